"""Unified diffs."""

from __future__ import annotations

import difflib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfault.errors import ToolError
from toolfault.validators import validate_unified_diff

GOOD = """--- a/x.py
+++ b/x.py
@@ -1,3 +1,4 @@ def f():
 one
-two
+2
+2.5
 three
"""
MALFORMED = "expected unified diff with ---/+++ headers and @@ hunks"


def refused(diff: Any) -> ToolError:
    """The failure of *diff*."""
    with pytest.raises(ToolError) as caught:
        validate_unified_diff(tool="apply_patch", field="diff", diff=diff)
    return caught.value


def accepted(diff: str) -> bool:
    """Whether *diff* is returned unchanged."""
    return validate_unified_diff(tool="t", field="diff", diff=diff) == diff


def test_diffs_that_add_up() -> None:
    """[P-15] Headers, hunks and right counts; one or many files, with or without git lines."""
    diffs = [
        GOOD,
        GOOD.rstrip("\n"),
        GOOD.replace("\n", "\r\n"),
        f"diff --git a/x b/x\nindex 1..2 100644\n{GOOD}",
        GOOD + GOOD.replace("x.py", "y.py"),
        f"{GOOD}\n{GOOD}",
        "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+line\n",
        "--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-line\n",
        "--- a\n+++ b\n@@ -1 +1 @@\n-a\n\\ No newline at end\n+b\n\\ No newline at end\n",
        "--- a\n+++ b\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n",
        "--- a\n+++ b\n@@ -1,2 +1,1 @@\n a\n--- not a header\n",
        "--- a\n+++ b\n@@ -1,1 +1,2 @@\n a\n+++ not a header\n@@ -9 +10 @@\n-x\n+y\n",
        "diff --git a/r b/s\nrename from r\nrename to s\n" + GOOD,
        "--- a\t2024-01-01\n+++ b\t2024-01-02\n@@ -1 +1 @@\n-a\n+b\n",
    ]
    for diff in diffs:
        assert accepted(diff)


def test_missing_headers_and_bare_hunks() -> None:
    """[P-15] Ruling 17: a header, a range in every hunk; a bare @@ is malformed."""
    diffs = [
        "",
        "\n",
        "--- a\n+++ b\n",
        "@@ -1 +1 @@\n-a\n+b\n",
        "--- a\n@@ -1 +1 @@\n-a\n+b\n",
        "+++ b\n@@ -1 +1 @@\n-a\n+b\n",
        "--- a\n+++ b\n@@\n-a\n+b\n",
        "--- a\n+++ b\n@@ ... @@\n-a\n+b\n",
        "--- a\n+++ b\n@@ -x +1 @@\n-a\n+b\n",
        "--- a\n+++ b\n@@ -1,9999999999 +1 @@\n-a\n+b\n",
        "--- a\n+++ b\ntext\n@@ -1 +1 @@\n-a\n+b\n",
        "diff --git a/x b/x\nBinary files differ\n",
    ]
    for diff in diffs:
        assert refused(diff).message == MALFORMED


def test_counts_that_do_not_add_up() -> None:
    """[P-15] Ruling 17: the failure says which hunk counts what and has what."""
    cases = [
        (
            "--- a\n+++ b\n@@ -1,3 +1,1 @@\n a\n-b\n",
            "hunk 1 counts 3 old and 1 new lines in its header but has 2 old and 1 new lines",
        ),
        (
            "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n+c\n",
            "hunk 1 has more lines than its header counts",
        ),
        (
            "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n@@ -5,2 +5,2 @@\n x\n",
            "hunk 2 counts 2 old and 2 new lines in its header but has 1 old and 1 new lines",
        ),
        ("--- a\n+++ b\n@@ -1,0 +1,0 @@\n", "hunk 1 has no lines"),
    ]
    for diff, says in cases:
        assert refused(diff).message == says


def test_only_texts_are_diffs() -> None:
    """[P-15] Anything but a text is of the wrong type."""
    assert refused(5).code == "wrong_type"


lines = st.lists(
    st.sampled_from(["a", "b", "", "-x", "+y", "--- z", "@@ q", " w", "\\ n"]), max_size=12
)


@given(lines, lines, st.integers(0, 4))
def test_every_diff_of_difflib_is_accepted(old, new, context) -> None:
    """[P-15] What difflib writes, whatever the lines look like, is a diff."""
    diff = "\n".join(difflib.unified_diff(old, new, "a", "b", lineterm="", n=context))
    if diff:
        assert accepted(diff)


@given(st.text(alphabet="-+@ \\ab1,0\n", max_size=120))
def test_no_text_makes_the_reader_raise_anything_else(text) -> None:
    """[P-15] Any text is accepted or refused as a diff."""
    try:
        validate_unified_diff(tool="t", field="diff", diff=text)
    except ToolError as error:
        assert error.code == "malformed_diff"
