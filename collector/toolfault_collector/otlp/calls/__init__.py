"""What spans mean: the tool calls that a trace tells of."""
