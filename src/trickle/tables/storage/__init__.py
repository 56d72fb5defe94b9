"""Where files lie: one protocol, a module for each kind of storage, and a row for each scheme."""
