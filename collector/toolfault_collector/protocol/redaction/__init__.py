"""Redaction: secrets leave texts before anything is stored."""
