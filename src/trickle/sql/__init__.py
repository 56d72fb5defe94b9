"""Statements about stream tables as SQL: text to frozen statements and back, without Spark."""
