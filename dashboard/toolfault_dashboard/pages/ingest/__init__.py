"""What comes in: the first data, and what was received or refused."""
