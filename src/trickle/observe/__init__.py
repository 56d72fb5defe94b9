"""What happened to stream tables, and how they are: read from their logs alone, without Spark."""
