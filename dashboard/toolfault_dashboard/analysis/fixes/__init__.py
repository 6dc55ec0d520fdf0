"""What to mend: what a failure could have been spared by, ranked, in words and as code."""
