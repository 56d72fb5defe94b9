"""Stream tables that are open in this process."""
