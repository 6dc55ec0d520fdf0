"""Texts of a failure stay bounded, on their lines, and data."""

from __future__ import annotations

from toolfault.errors import (
    Issue,
    ToolError,
)


def test_the_system_text_cuts_a_long_context():
    """[P-06] Ruling 10: the context takes at most 520 characters of the system text."""
    error = ToolError("t", "m", retry_context={"k": "x" * 400, "l": "y" * 400})

    context = error.render("system").split("retry_context: ")[1]
    assert len(context) == 520
    assert context.endswith("…")


def test_names_from_the_model_cannot_forge_lines_or_grow():
    """[L-16] Trap 11: tool and field names are one bounded line."""
    forged = "x\nERROR forged\x1b[2J\u202e" + "y" * 1_000
    error = ToolError.from_issues(forged, [Issue(forged, "unknown_field")])

    for text in error.renderings().values():
        assert "\n" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert len(text) < 1_000
    assert len(error.issues[0].field) <= 256


def test_markup_in_names_stays_data():
    """[A11] Trap 11: an invented name is kept as text; escaping is the reader's."""
    error = ToolError.from_issues("t", [Issue('{"<img src=x>": 1}', "unknown_field")])

    assert error.issues[0].field == '{"<img src=x>": 1}'


def test_long_texts_keep_their_first_line_and_their_footer():
    """[L-16][H-16] The model's text is bounded and ends with what to do."""
    issues = [Issue(f"field_{n}", "wrong_type", "x" * 480) for n in range(50)]
    text = ToolError.from_issues("t", issues, total=1_000).render("llm")

    assert len(text) <= 8_000
    assert text.startswith("Error: Invalid parameters - 1000 errors:\n")
    assert text.endswith("\nPlease fix all errors and retry with correct types.")


def test_twenty_bullets_then_a_count():
    """[H-16] More than twenty issues are counted, not listed."""
    issues = [Issue(f"f{n}", "missing_field") for n in range(50)]
    lines = ToolError.from_issues("t", issues, total=1_000).render("llm").split("\n")

    assert lines[0] == "Error: Invalid parameters - 1000 errors:"
    assert lines[20] == "  • f19: Missing required parameter"
    assert lines[21] == "  … and 980 more errors"
    assert lines[22:] == ["", "Please fix all errors and retry with correct types."]
