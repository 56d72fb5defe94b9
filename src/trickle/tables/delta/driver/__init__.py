"""Reads and writes Delta tables in the driver, without Spark jobs."""
