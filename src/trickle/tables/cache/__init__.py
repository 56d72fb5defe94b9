"""What the driver remembers of tables."""
