"""What to mend: the evidence, the ranking, and which wording helps."""
