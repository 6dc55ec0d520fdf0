"""Chains and their conversations in the database."""
