"""How answers are counted and kept: in parts, once for a page, from rollups, in bounded time."""
