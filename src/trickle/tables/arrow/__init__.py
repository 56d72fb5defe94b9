"""Arrow tables: types, rows, and the border to Spark."""
