"""Computes change plans: what they read, what the driver computes, what Spark does."""
