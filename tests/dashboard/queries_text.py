"""Query texts drawn by hypothesis: every key, with values that are in the data and that are not."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.dashboard.generated import CODES, MODELS, REMEDIES, TOOLS

from toolfault_dashboard.search import KEYS, TEXT, Clause, NumberRange, Pattern, Query

__all__ = ["clauses", "queries"]

PRESENT = [name for name, key in KEYS.items() if key.kind not in {"time", "presence"}]

KNOWN = {
    "tool": TOOLS,
    "model": tuple(model for model in MODELS if model),
    "code": tuple(CODES),
    "field": ("port", "url", "items", "items.0.name", "items.*.name", "50%_off"),
    "field_pattern": ("items.*.name", "port"),
    "issue": ("wrong_type", "out_of_range"),
    "near_miss": (*REMEDIES, "any"),
    "agent": ("travel-bot", "code-bot"),
    "release": ("1.3.0", "1.4.0"),
    "environment": ("prod", "test"),
    "variant": ("control", "treatment", "a=1", "b=2", "a=1,b=2"),
    "conversation": ("conv-7", "conv-12", "file-3"),
    "phase": ("validation", "handler"),
    "reason": ("paused",),
    "detection": ("explicit", "soft:error_text"),
    "exception": ("TimeoutError",),
    "user": ("u-7",),
    "framework": ("langchain", "mcp"),
    "conversation_rung": ("explicit", "framework", "meta", "trace", "none"),
}
WORDS = (
    "error",
    "ERROR",
    "no",
    '"no"',
    "\\",
    "100%",
    "_all_",
    "[a-z]*",
    "ÄÖÜ",
    "äöü",
    "port",
    "zzz",
)

_odd = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


def _patterns(key: str) -> st.SearchStrategy[Pattern]:
    known = st.sampled_from(KNOWN.get(key, ("x",)))
    exact = st.builds(lambda text: Pattern((text,)), known | _odd)
    prefix = st.builds(lambda text, n: Pattern((text[:n], "")), known, st.integers(0, 4))
    inner = st.builds(lambda text: Pattern(("", text[:2], "")), known)
    if key == "near_miss":
        return st.builds(lambda text: Pattern((text,)), known) | prefix
    return exact | prefix | inner


_numbers = st.integers(0, 1_000) | st.sampled_from((12.5, 730.25))
_ranges = st.one_of(
    st.builds(
        lambda low, inc: NumberRange(low=float(low), low_included=inc), _numbers, st.booleans()
    ),
    st.builds(
        lambda high, inc: NumberRange(high=float(high), high_included=inc), _numbers, st.booleans()
    ),
    st.builds(lambda a, b: NumberRange(float(min(a, b)), float(max(a, b))), _numbers, _numbers),
)


@st.composite
def clauses(draw: st.DrawFn) -> Clause:
    """Any clause that can be written."""
    from toolfault_dashboard.search import parse_moment

    name = draw(st.sampled_from((*KEYS, TEXT, "tag.team", "tag.x.y")))
    negated = draw(st.booleans())
    if name == TEXT:
        return Clause(
            TEXT, (Pattern((draw(st.sampled_from(WORDS) | _odd.filter(bool)),)),), negated
        )
    if name.startswith("tag."):
        value = Pattern((draw(st.sampled_from(("blue", "red", "1", ""))),))
        return Clause(name, (value,), negated)
    key = KEYS[name]
    if key.kind == "time":
        text = draw(
            st.sampled_from(("7d", "24h", "3w", "2026-11-01", "2026-11-10T10:30:00Z", "0s"))
        )
        moment = parse_moment(text)
        assert moment is not None
        return Clause(name, (moment,))
    if key.kind in {"choice", "presence"}:
        values: st.SearchStrategy[Pattern | NumberRange] = st.builds(
            lambda text: Pattern((text,)), st.sampled_from(key.choices or PRESENT)
        )
    elif key.kind in {"number", "milliseconds"}:
        values = _ranges
    else:
        values = _patterns(name)
    chosen = draw(st.lists(values, min_size=1, max_size=3, unique=True))
    return Clause(name, tuple(chosen), negated)


queries = st.builds(
    lambda found: Query(tuple(dict.fromkeys(found))), st.lists(clauses(), max_size=4)
)
"""Queries of up to four clauses."""
