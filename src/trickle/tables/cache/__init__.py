"""The caches of the driver."""
