"""Figures of a scope: totals, rates with what their intervals need, tables, over time."""
