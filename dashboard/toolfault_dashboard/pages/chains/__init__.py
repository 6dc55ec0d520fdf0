"""Chains and conversations: one of each, and the round trips that chains cost."""
