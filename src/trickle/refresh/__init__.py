"""Preparing, refreshing, explaining and verifying stream tables."""
