"""Anchors of headings."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["slug"]


def slug(heading: str) -> str:
    """Return the anchor of a heading, as MkDocs makes it: links work here and on the site alike."""
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
