"""Derived hints."""

from __future__ import annotations

from typing import Any

from toolfault.errors import Issue, closest, did_you_mean, example_of, listed, with_tools

FIELDS = ["expression", "file_path", "follow_redirects", "port", "user_id"]


def test_did_you_mean_the_closest_name() -> None:
    """[P-13] Slips, abbreviations, parts and other spellings find the name that was meant."""
    cases: list[tuple[Any, str | None]] = [
        ("expresion", "expression"),
        ("expr", "expression"),
        ("path", "file_path"),
        ("filePath", "file_path"),
        ("follow-redirects", "follow_redirects"),
        ("PORT", "port"),
        ("prt", "port"),
        ("userid", "user_id"),
        ("prot", "port"),
        ("opt", None),
        ("x", None),
        ("banana", None),
        ("", None),
        (5, None),
        (None, None),
    ]
    for word, found in cases:
        said = None if found is None else f"Did you mean '{found}'?"
        assert did_you_mean(word, FIELDS) == said, word


def test_the_search_is_bounded_and_ordered() -> None:
    """[P-13] The best come first, and neither long words nor many options hurt."""
    assert closest("ulr", ["rule", "run", "url"]) == ["url"]
    assert closest("form", ["format", "from"], most=2) == ["from", "format"]
    assert closest("red", ["read", "reds", "blue", "red"], most=2) == ["red", "reds"]
    assert closest("x" * 100_000, [f"option_{n}" for n in range(10_000)]) == []


def test_an_example_of_the_expected_form() -> None:
    """[P-13] Types and formats have an example, bounds have none."""
    for expected, example in (
        ("integer", 'Example: {"port": 1}'),
        ("boolean", 'Example: {"port": true}'),
        ("date (YYYY-MM-DD)", 'Example: {"port": "2024-01-31"}'),
        ("<= 5", None),
        (None, None),
    ):
        assert example_of(Issue("port", "wrong_type", expected=expected)) == example


def test_choices_are_listed_as_pydantic_lists_them() -> None:
    """[P-13] Two are joined by or, many are cut."""
    assert listed(["a", "b", "c"]) == "'a', 'b' or 'c'"
    assert listed(["a"]) == "'a'"
    assert listed([]) == ""
    assert listed(range(50)).endswith("19, …")


def test_tools_are_named_unless_the_text_names_them() -> None:
    """A wrong name that contains a right one names none."""
    known = ["book", "wait"]
    text = "Unknown tool: bookk"
    assert with_tools(text, "bookk", known) == (
        f"{text}. Available tools: book, wait. Did you mean 'book'?"
    )
    text = "Unknown tool: xyz. There are book, wait."
    assert with_tools(text, "xyz", known) == text
    assert with_tools("Unknown tool: xyz", "xyz", []) == "Unknown tool: xyz"
