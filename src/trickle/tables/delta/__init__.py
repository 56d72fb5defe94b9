"""Delta Lake: its log, sources, targets and state tables."""
