"""Stub agents, one for each framework; each is imported in the environment of its framework."""
