"""Rates and counts: of the project, its tools, its codes, and broken down."""
