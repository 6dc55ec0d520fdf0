"""What to mend, and which wording helps."""
