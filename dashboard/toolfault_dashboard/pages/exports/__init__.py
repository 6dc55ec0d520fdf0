"""What pages show, as files."""
