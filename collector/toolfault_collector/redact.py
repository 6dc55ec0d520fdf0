"""Removal of secrets from text that is kept for people to look at.

The SDK redacts before anything leaves the agent; this is the second net, for events of other
senders and for what is refused, where no known member says what a value is.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["redact"]

_SECRET: Final = re.compile(
    r"""
      (?P<pem>-----BEGIN[ ][A-Z ]{0,40}PRIVATE[ ]KEY-----
        [\s\S]{0,20000}?(?:-----END[ ][A-Z ]{0,40}-----|\Z))
    | (?P<jwt>\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)
    | (?P<key>\b(?:AKIA|ASIA)[0-9A-Z]{16}\b
        |\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|sk-|[prs]k_live_|tf_(?:ingest|read)_)[\w-]{10,}
        |\bAIza[\w-]{30,})
    | (?P<bearer>\b(?:[Bb]earer|[Bb]asic)\s+[\w.~+/=-]{8,})
    | (?P<url>(?<=://)[^\s/@:"']{1,100}:[^\s/@"']{1,200}(?=@))
    """,
    re.VERBOSE,
)
# A member or setting whose name says that its value is secret. Names that only contain such a
# word (token_count, author, session_minutes) are left alone.
_NAMED: Final = re.compile(
    r"""(?ix)
    (?P<name>(?:\\?["'])?\b(?:[a-z0-9]{1,30}[_-]){0,4}
      (?:password|passwd|pwd|secret|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key
        |authorization|credentials?|cookie|session[_-]?key|client[_-]?secret|dsn)
      (?:\\?["'])?\s{0,3}[:=]\s{0,3})
    (?P<value>\\?"(?:[^"\\]|\\.){1,4000}"?|\\?'(?:[^'\\]|\\.){1,4000}'?|[^\s,;&}\]"']{1,4000})
    """
)


def redact(text: str) -> str:
    """Return *text* with what looks like a secret replaced by ``[redacted:kind]``."""
    text = _SECRET.sub(lambda match: f"[redacted:{match.lastgroup}]", text)
    return _NAMED.sub(_without_value, text)


def _without_value(match: re.Match[str]) -> str:
    if match["value"].lstrip("\\\"'").lower().startswith("[redacted"):
        return match[0]  # the sender has done it
    return f'{match["name"]}"[redacted:named]"'
