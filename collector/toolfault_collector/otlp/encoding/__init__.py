"""Bodies and files to spans, log records and points."""
