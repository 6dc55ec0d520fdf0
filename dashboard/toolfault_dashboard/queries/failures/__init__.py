"""Failures: the list, one of them, their kinds, codes, issues and facets."""
