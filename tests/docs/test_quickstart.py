"""The quick start, executed word by word."""

from __future__ import annotations

import csv
import re
import signal
from pathlib import Path

import httpx2
from tests.docs.pages import blocks, says
from tests.docs.stage import clone, run_program
from tests.docs.terminal import Terminal
from tests.live_server import is_ready, wait_until

from toolfault_collector.settings import Settings

PAGE = "docs/quickstart.md"
ADDRESS = "127.0.0.1:8321"
SERVE = "toolfault serve\n"
TRANSCRIPT = """[
    {"role": "assistant", "content": null, "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "a", "content": "Error: no such file"}]"""


def test_a_reader_gets_what_the_page_says(tmp_path: Path) -> None:
    """Every block in its order, as it is printed, in a fresh home and a fresh clone.

    Told otherwise than printed: the port, since 8321 may be taken here, and KEY, as the page says.
    Not done, because it takes a network and minutes: `pip install` only sees that the folders are
    distributions and links their commands, and `make demo` only says what it would run
    (tests/e2e/test_demo.py runs that).
    """
    home, there = _reader(tmp_path)
    environ = {"HOME": str(home), "PATH": "/usr/bin:/bin", "TOOLFAULT_PORT": "0", "NO_COLOR": "1"}
    terminal = Terminal(there, environ)
    server, address, key, said, link = None, ADDRESS, "KEY", "", ""

    try:
        for block in blocks(PAGE):
            text = block.text.replace(ADDRESS, address).replace("KEY", key)
            if block.language == "text":
                assert says(text, said), f"{block}: it printed\n{said}"
            elif block.language == "python":
                said = run_program(text, there, terminal.environ)
            elif text.endswith(SERVE):
                terminal.run(text.removesuffix(SERVE))
                server = terminal.start(SERVE)
                address = wait_until(is_ready, server, terminal.log).removeprefix("http://")
                said = re.sub(r"^{.*\n", "", terminal.said(), flags=re.MULTILINE)  # log lines
                link = said.split()[-1]
                terminal = Terminal(there, environ)  # "in another terminal"
            else:
                said = terminal.run(text)
                key = said.splitlines()[-1] if "keys create" in text else key
        _look_at_changes(link)
        assert server is not None
        server.send_signal(signal.SIGINT)  # Ctrl-C
        assert server.wait(60) == 0
    finally:
        if server is not None:
            server.kill()
    with (there / "failures.csv").open(newline="") as exported:
        assert [row["code"] for row in csv.DictReader(exported)] == ["invalid_input"]


def _reader(folder: Path) -> tuple[Path, Path]:
    """A home with a transcript, and a clone."""
    home, there = folder / "home", folder / "clone"
    (home / "transcripts").mkdir(parents=True)
    (home / "transcripts" / "a.json").write_text(TRANSCRIPT)
    clone(there)
    assert Settings.model_fields["port"].default == int(ADDRESS.rpartition(":")[2])
    return home, there


def _look_at_changes(link: str) -> None:
    """Sign in by the link that the server printed, and find the change that was recorded."""
    server, _, token = link.partition("/sign-in?token=")
    with httpx2.Client(base_url=server, trust_env=False, timeout=60) as browser:
        browser.post("/sign-in", data={"token": token}, headers={"Origin": server})
        page = browser.get("/changes").text
    assert "Accept words for people in book_table" in page
