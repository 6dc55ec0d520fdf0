"""Failures: the list, one of them, their kinds, and those that arrive now."""
