"""Retention: what is old goes, between chains, and never by a clock that is doubted."""
