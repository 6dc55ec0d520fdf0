"""Chains of retries: which calls belong together and what they come to. Pure: no database."""
