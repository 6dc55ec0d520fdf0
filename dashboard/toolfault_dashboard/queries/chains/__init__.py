"""Chains and conversations: the lists, one of each, and what they cost."""
