"""Engines: tables in memory, DuckDB or Spark, read, checked and aggregated in place."""
