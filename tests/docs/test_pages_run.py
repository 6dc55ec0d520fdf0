"""Every example of the SDK's pages is run and prints what stands below it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/errors-for-llms.md", "docs/tools.md", "docs/tour.md")
_EXAMPLE = re.compile(
    r"```python\n(.*?)```\n(?:\n(?:and the model would read\n\n)?```text\n(.*?)```)?", re.DOTALL
)


def examples() -> list[tuple[str, str, str]]:
    """Page and heading, code, and what it should print."""
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        for match in _EXAMPLE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append((f"{page}:{line}", match[1], match[2] or ""))
    return found


@pytest.mark.parametrize(
    ("code", "printed"),
    [pytest.param(code, printed, id=place) for place, code, printed in examples()],
)
def test_an_example(code: str, printed: str) -> None:
    """The block runs by itself and prints the text that follows it, or nothing."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<example>", "exec"), {"__name__": "example"})

    assert out.getvalue() == printed


def test_the_pages_have_examples() -> None:
    """No page went without."""
    assert {place.rpartition(":")[0] for place, _, _ in examples()} == set(PAGES)
