"""Table I/O behind small contracts: Delta Lake, and tables in memory."""
