"""Protocol v1: from the bytes of a request to events. Pure: no database, no HTTP."""
