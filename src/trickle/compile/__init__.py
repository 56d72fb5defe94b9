"""From a plan to a program: rewrites that keep the meaning, and the change plans derived from it."""
