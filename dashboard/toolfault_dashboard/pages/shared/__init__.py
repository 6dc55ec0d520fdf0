"""What pages share: the request and its query, the frame, lines of tables, errors."""
