"""Adapters to other people's programs; each module is imported by whoever uses that program."""
