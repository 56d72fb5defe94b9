"""What tests of stream tables need, for users too: tables in memory, TPC-H."""
