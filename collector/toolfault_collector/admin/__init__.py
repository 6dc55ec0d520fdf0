"""Administration: projects, keys, settings, the audit log, backups, refused events."""
