"""Source lines for tracebacks, read and redacted on the sender thread.

``linecache`` reads and keeps whole files in the host's memory; here a file is read up to the line
asked for, and a bounded number of lines is remembered.
"""

from __future__ import annotations

import sys

__all__ = ["source_line"]

_KEPT = 2_000
_LINE = 500

_lines: dict[tuple[str, int], tuple[object, str]] = {}


def source_line(file: str, number: int) -> str:
    """Return one line of source, redacted, without margins; empty where it cannot be had."""
    from toolfault.errors import redact_text, redaction_policy

    policy = redaction_policy()
    known = _lines.get((file, number))
    if known is None or known[0] is not policy:
        if len(_lines) >= _KEPT:
            _lines.clear()
        known = _lines[(file, number)] = (policy, redact_text(_read(file, number)))
    return known[1]


def _read(file: str, number: int) -> str:
    # Interactive cells and generated code exist only where somebody put them.
    linecache = sys.modules.get("linecache")
    if linecache is not None and file in linecache.cache:
        text = linecache.getline(file, number)
        return text.strip()[:_LINE] if isinstance(text, str) else ""
    if file.startswith("<"):
        return ""
    try:
        with open(file, "rb") as lines:  # noqa: PTH123 - no pathlib in the SDK
            for _ in range(number - 1):
                lines.readline(1 << 16)
            return lines.readline(1 << 16).decode("utf-8", "replace").strip()[:_LINE]
    except OSError:
        return ""
