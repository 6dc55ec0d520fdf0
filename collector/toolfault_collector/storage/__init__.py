"""The database: engines, tables, and the one way events are stored."""
