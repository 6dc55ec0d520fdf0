"""How answers are counted and kept: in segments, once for a page, from rollups, in bounded time."""
