"""Rows in order: pages by cursor, streams for exports."""
