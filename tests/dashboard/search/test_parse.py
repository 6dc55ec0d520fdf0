"""The query language as text: what it accepts, what it says about the rest."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dashboard.queries_text import queries

from toolfault_dashboard.search import KEYS, Query, QueryError, parse
from toolfault_dashboard.search.keys import Key
from toolfault_dashboard.search.parser import MAX_CLAUSES, MAX_LENGTH, MAX_VALUES


@given(queries)
@settings(max_examples=50, deadline=None)
def test_a_query_survives_its_own_text(query: Query) -> None:
    """Every tree is read back from its canonical text, which then no longer changes."""
    assert parse(str(query)) == query
    assert str(parse(str(query))) == str(query)


@given(st.text(max_size=40) | st.text('tool:code*,"-!\\ \t>.=123dhx', max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_query_or_an_explained_error(text: str) -> None:
    """No text at all raises anything but QueryError, whose column lies within the text."""
    try:
        query = parse(text)
    except QueryError as error:
        where, said = error.column, error.message
    else:
        assert parse(str(query)) == query
        return
    assert 1 <= where <= len(text) + 1
    assert said.endswith(".")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("  tool:a   tool:a ", "tool:a"),
        ("tool:a,b,a", "tool:a,b"),
        ("!tool:a", "-tool:a"),
        ("no:model", "-has:model"),
        ("-no:model", "has:model"),
        ("env:prod session:c1", "environment:prod conversation:c1"),
        ("TOOL:Http", "tool:Http"),
        ("Chain:RECOVERED", "chain:recovered"),
        ('tool:"http_request"', "tool:http_request"),
        ('tool:"a*b"', 'tool:"a*b"'),
        ("tool:a**b", "tool:a*b"),
        ('tool:my*" tool"', 'tool:my*" tool"'),
        ("detection:soft:error_text", "detection:soft:error_text"),
        ("duration:>0.5s", "duration:>500"),
        ("duration:1s..2m", "duration:1000..120000"),
        ("attempt:2", "attempt:2"),
        ("since:2026-11-01T10:00+02:00", "since:2026-11-01T08:00:00Z"),
        ("until:2026-11-01T00:00:00Z", "until:2026-11-01"),
        ('"not found"', '"not found"'),
        ("10:30", '"10:30"'),
        ('say"ing no"', '"saying no"'),
        ('"OR" "(tool:a)" "-x" "a*b" or', '"OR" "(tool:a)" "-x" "a*b" or'),
        ('tool:""', 'tool:""'),
        ("tag.team:blue", "tag.team:blue"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    """Ways of writing the same query have one canonical text."""
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "column", "suggestion"),
    [
        ("tool:a tol:b", 8, "tool"),
        ("colour:red", 1, None),
        ("tool:a -conversaton:c", 9, "conversation"),
        ("chain:recoverd", 1, "recovered"),
        ("has:modle", 1, "model"),
        ("tool:", 5, None),
        ("tool:a,", 7, None),
        ('x "never closed', 3, None),
        ('tool:"never closed', 6, None),
        ("since:yesterday", 1, None),
        ("-since:7d", 2, None),
        ("since:7d,8d", 1, None),
        ("duration:fast", 1, None),
        ("a\x00b", 2, None),
        ("a\ud800b", 2, None),
        ('""', 1, None),
        ("tool:a OR tool:b", 8, None),
        ("NOT tool:a", 1, None),
        ("x AND y", 3, None),
        ("(tool:a)", 1, None),
        ("x -(tool:a)", 4, None),
        ("--tool:a", 2, None),
        ("foo*bar", 1, None),
        ("tool:a *", 8, None),
    ],
)
def test_errors_say_where_and_what_was_meant(
    text: str, column: int, suggestion: str | None
) -> None:
    """An error names its column and the nearest word there is."""
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert (caught.value.column, caught.value.suggestion) == (column, suggestion)


@pytest.mark.parametrize("key", [key for key in KEYS.values() if key.kind == "choice"])
def test_a_closed_set_says_what_it_has(key: Key) -> None:
    """A pattern, an empty and an unknown value are refused with the list, negated or not."""
    for value in (f"{key.choices[0][:2]}*", "*", '""', "no_such_value"):
        for sign in ("", "-"):
            with pytest.raises(QueryError, match=f"{key.name} is one of {', '.join(key.choices)}."):
                parse(f"{sign}{key.name}:{key.choices[0]},{value}")
    for choice in key.choices:
        assert str(parse(f"-{key.name}:{choice.upper()}")) == f"-{key.name}:{choice}"


@pytest.mark.parametrize(
    "text",
    [
        "x" * (MAX_LENGTH + 1),
        " ".join(["tool:a"] * (MAX_CLAUSES + 1)),
        "tool:" + ",".join(str(n) for n in range(MAX_VALUES + 1)),
    ],
)
def test_what_is_too_large_is_refused(text: str) -> None:
    """Length, conditions and values are bounded, so that no query can be made slow by size."""
    with pytest.raises(QueryError):
        parse(text)


def test_toggling_adds_and_takes_away() -> None:
    """A facet adds its value beside others of its key and takes it away again."""
    query = parse("tool:a since:7d -code:x")
    wider = query.toggled("tool", "b")
    assert str(wider) == "tool:a,b since:7d -code:x"
    assert wider.selects("tool", "b")
    assert wider.toggled("tool", "b") == query
    assert str(query.toggled("tool", "a")) == "since:7d -code:x"
    assert str(query.toggled("code", "x")) == "tool:a since:7d -code:x code:x"
