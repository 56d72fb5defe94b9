"""Computes plans in the driver, over Arrow and polars, where that means what Spark means."""
