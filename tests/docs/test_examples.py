"""The examples of both README files are run, and print what stands below them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from toolfault_dashboard.docs import docs_names

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = re.compile(
    r"<!-- a test runs this block -->\n```python\n(.*?)```\n.*?```text\n(.*?)```", re.DOTALL
)


def _example(page: str) -> tuple[str, str]:
    """The program of *page* and what stands below it as its output."""
    match = EXAMPLE.search((ROOT / page).read_text(encoding="utf-8"))
    assert match is not None, f"{page} has no example"
    code, printed = match.groups()
    return code, printed


def test_the_example_prints_what_the_page_says(tmp_path: Path):
    """The block of both pages runs as a program of its own and prints the text that follows it."""
    assert _example("sdk/README.md") == _example("README.md")
    code, printed = _example("README.md")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TOOLFAULT_")}

    done = subprocess.run(
        # Nothing listens where the example reports to, which must not matter.
        [sys.executable, "-W", "error", "-c", code.replace("127.0.0.1:8321", "127.0.0.1:9")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_the_links_of_a_page_lead_somewhere(page: str):
    """Every relative link names a file of the repository (`make docs` checks those in `docs`)."""
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)

    missing = [t for t in targets if not ((ROOT / page).parent / t).exists()]

    assert missing == []


def test_every_page_of_the_documentation_is_reached_from_its_index():
    """docs/index.md links every page beside it, and those that are made from the code."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {f"{name}.md" for name in docs_names()} - {"index.md"}

    assert {page for page in pages if f"]({page})" not in index} == set()
