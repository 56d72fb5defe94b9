"""Refreshes stream tables when they are due: the loop, who leads it, and what is due."""
