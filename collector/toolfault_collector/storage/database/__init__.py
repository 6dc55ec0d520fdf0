"""SQLite and PostgreSQL: engines, the schema, and many rows in few statements."""
