"""Every block of the pages is run by a test, or says here why it is not."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx2
import pytest
import typer
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from tests.docs.pages import ROOT, Block, blocks, pages, says
from tests.docs.stage import Stage, stage
from tests.factories import failure
from typer.core import TyperGroup

from toolfault.integrations import fastmcp
from toolfault_dashboard.cli.app import app

Run = Callable[[Stage, Block], None]
APP = typer.main.get_command(app)


def _commands(on: Stage, block: Block) -> None:
    """Run the lines."""
    on.terminal().run(on.as_told(block.text))


def _curl(on: Stage, block: Block) -> None:
    """Where curl is installed, it gets the failures that the query finds."""
    if shutil.which("curl"):
        said = on.terminal().run(on.as_told(block.text))
        assert json.loads(said[said.index("{") :])["total"] == 1


def _recognised(on: Stage, block: Block) -> None:
    """The import of a file with as many calls says this."""
    assert says(block.text, on.terminal().run("toolfault import run.json").splitlines(True)[0])


def _server(on: Stage, block: Block) -> None:
    """Make the environment; the server of its last line runs already."""
    *lines, last = block.text.splitlines()
    assert last.startswith("toolfault serve "), last
    on.terminal().run("\n".join(lines))


def _program(on: Stage, block: Block) -> None:
    """Run it as it stands there."""
    on.program(block.text)


def _wrapped(on: Stage, block: Block) -> None:
    """OpenAI's client is not installed here (tests/integrations runs it): one of its form is."""
    call = {"id": "a", "function": {"name": "wrapped", "arguments": "{"}}
    history = [{"tool_calls": [call]}, {"role": "tool", "tool_call_id": "a", "content": "no"}]
    on.program(
        "import toolfault\nfrom types import SimpleNamespace as Of\ntoolfault.init()\n"
        "OpenAI = lambda: Of(chat=Of(completions=Of(create=lambda messages: None)))\n"
        f"{block.text}\nclient.chat.completions.create(messages={history!r})"
    )
    assert on.found("tool:wrapped") == 1


def _reported_messages(on: Stage, block: Block) -> None:
    """Run it with the history of a chat that has a failure; this arrives."""
    history = [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "loop", "input": {}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "is_error": True, "content": "no"}
            ],
        },
    ]
    around = f"import toolfault\ntoolfault.init()\nmessages, chat_id = {history!r}, 'chat-1'\n"
    on.program(around + block.text)
    assert on.found("tool:loop") == 1


def _middleware(on: Stage, block: Block) -> None:
    """FastMCP is not installed here (tests/integrations runs it): its names and options exist."""
    compile(block.text, str(block), "exec")
    assert set(re.findall(r"import (\w+)", block.text)) <= set(fastmcp.__all__)
    middleware = Path(fastmcp.__file__).with_name("middleware.py")
    assert "improve: bool" in middleware.read_text("utf-8")


def _webhook(on: Stage, block: Block) -> None:
    """The test message that was sent before has these headers and these members."""
    head, body = block.text.split("\n\n")
    shown = json.loads(body)
    sent = on.receiver.deliveries[-1]
    assert {line.partition(":")[0] for line in head.splitlines()} <= set(sent.headers)
    assert set(shown) == set(sent.document)
    assert set(shown["data"]) == set(sent.data)


def _coding_agent(on: Stage, block: Block) -> None:
    """No such agent is here: the command that it starts exists, the address answers."""
    text = on.as_told(block.text)
    if block.language == "json":
        (server,) = json.loads(text)["mcpServers"].values()
        _knows(shlex.join(("toolfault", *server.get("args", ["mcp"]))))
        headers = server.get("headers", {})
    else:
        commands = re.findall(r" -- (toolfault .*)", text)
        assert commands
        for each in commands:
            _knows(each)
        headers = dict(re.findall(r'"(Authorization): (.*?)"', text))
    address = re.search(r"http://[\w.:]+/mcp", text)
    assert ("127.0.0.1:8321" in block.text) == (address is not None)
    if address is not None:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        headers = headers or {"Authorization": f"Bearer {on.environ['READ_KEY']}"}
        headers["Accept"] = "application/json, text/event-stream"
        assert httpx2.post(address[0], json=asked, headers=headers, timeout=60).is_success


def _exporter(on: Stage, block: Block) -> None:
    """An exporter that is told these variables, and nothing else, reports a failure."""
    variables = dict(line.split("=", 1) for line in on.as_told(block.text).splitlines())
    assert variables.pop("OTEL_EXPORTER_OTLP_PROTOCOL") == "http/protobuf"  # that of this exporter
    provider = TracerProvider()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "spanned",
        "error.type": "ValueError",
    }
    provider.get_tracer("tests").start_span("execute_tool spanned", attributes=tool).end()
    provider.shutdown()
    assert on.found("tool:spanned") == 1


def _request(on: Stage, block: Block) -> None:
    """Keep the head of the request for the body that follows."""
    first, *lines = on.as_told(block.text).splitlines()
    on.notes["path"] = first.removeprefix("POST ")
    on.notes["headers"] = dict(line.split(": ") for line in lines if "(optional)" not in line)


def _batch(on: Stage, block: Block) -> None:
    """Send it with that head, and with one event that is stored and one that is not."""
    events = json.dumps([failure(tool="posted"), failure(seq="x")])
    assert "[ ... ]" in block.text
    answer = httpx2.post(
        on.server.address + on.notes["path"],
        headers=on.notes["headers"],
        content=block.text.replace("[ ... ]", events),
        timeout=60,
    )
    assert answer.status_code == 200, answer.text
    assert on.found("tool:posted release:1.4.0 agent:travel-bot") == 1
    on.notes["answer"] = answer.json()


def _answer(on: Stage, block: Block) -> None:
    """It has the members of the answer that came, also of the event that was rejected."""
    shown, came = json.loads(block.text), on.notes["answer"]
    assert set(shown) == set(came)
    (one,), (other,) = shown["rejected"], came["rejected"]
    assert set(one) == set(other)
    assert (one["code"], one["pointer"][-3:]) == (other["code"], other["pointer"][-3:])


def _compose_variables(on: Stage, block: Block) -> None:
    """No docker is here (tests/test_container.py reads its file): it uses these variables."""
    compose = (ROOT / "docker-compose.yml").read_text("utf-8")
    for line in block.text.splitlines():
        assert f"${{{line.partition('=')[0]}:-" in compose, line


def _tour(on: Stage, block: Block) -> None:
    """Its transcripts are not part of the repository (tests/transcripts/test_tour.py recounts)."""
    for line in block.text.splitlines():
        _knows(line)


EXAMPLES = "tests/docs/test_examples.py"
PAGES_RUN = "tests/docs/test_pages_run.py"
OPERATIONS = "tests/docs/test_operations.py"
FRAMEWORKS = "tests/integrations/test_integrations.py"
QUICKSTART = "tests/docs/test_quickstart.py"
DIALECTS = "tests/integrations/exporters/arrived.py"  # writes the page from programs that it runs

# One entry for each block of a page, in their order: a function that runs it here, the test that
# runs it, or why nothing does.
BLOCKS: dict[str, Sequence[Run | str]] = {
    "README.md": [_commands, *3 * [FRAMEWORKS], EXAMPLES, EXAMPLES, _server, _commands],
    "sdk/README.md": [_commands, EXAMPLES, EXAMPLES],
    "demo/README.md": ["goes on until Ctrl-C; tests/e2e/test_demo.py runs the same program"],
    "docs/alerts.md": [_commands, "a drawing", _webhook],
    "docs/clickhouse.md": [
        "a drawing",
        "needs a server of ClickHouse; tests/dashboard/cli/test_copy_events.py runs the commands",
        "needs a server of ClickHouse; tests/dashboard/cli/test_copy_events.py runs the commands",
    ],
    "docs/coding-agents.md": [
        *4 * [_coding_agent],
        "part of an answer, whose form tests/dashboard/mcp/test_untrusted.py holds",
    ],
    "docs/dialects.md": 15 * [DIALECTS],
    "docs/errors-for-llms.md": 26 * [PAGES_RUN],
    "docs/frameworks.md": [_wrapped, _reported_messages, _middleware],
    "docs/importing.md": [_commands, _recognised],
    "docs/install.md": [_commands],
    "docs/kinds.md": [_commands],
    "docs/operations.md": [
        *7 * [OPERATIONS],
        "the configuration of Caddy, which is not here",
        OPERATIONS,
        _compose_variables,
    ],
    "docs/otlp.md": [_exporter],
    "docs/protocol.md": [_request, _batch, _answer],
    "docs/quickstart.md": 14 * [QUICKSTART],
    "docs/reading.md": [_commands, "tests/dashboard/api/test_client.py", _curl],
    "docs/tools.md": 11 * [PAGES_RUN],
    "docs/tour.md": [_tour, PAGES_RUN, PAGES_RUN],
    "docs/troubleshooting.md": [_commands],
}


def test_every_block_is_run_or_has_a_reason() -> None:
    """A new block is written into the table; a test that is named there reads the page."""
    assert {page: len(found) for page in pages() if (found := blocks(page))} == {
        page: len(entries) for page, entries in BLOCKS.items()
    }
    for page, entries in BLOCKS.items():
        for name in {each for each in entries if isinstance(each, str) and each.endswith(".py")}:
            assert Path(page).name in (ROOT / name).read_text("utf-8"), (page, name)


def test_the_blocks_of_all_pages_run(tmp_path: Path) -> None:
    """One server, and one project that has failures already, for all that run here."""
    with stage(tmp_path) as on:
        for page, entries in BLOCKS.items():
            for block, entry in zip(blocks(page), entries, strict=True):
                if not isinstance(entry, str):
                    try:
                        entry(on, block)
                    except BaseException as error:
                        error.add_note(f"in the block at {block}")
                        raise


def test_python_of_a_page_is_python() -> None:
    """Also where what it needs is not installed."""
    for page in BLOCKS:
        for block in blocks(page):
            if block.language == "python":
                compile(block.text, str(block), "exec")


def test_every_command_in_a_text_exists() -> None:
    """Each ``toolfault ...`` in a sentence or a table is a command with these options."""
    found = [
        each
        for page in pages()
        for each in re.findall(r"`(toolfault [^`]+)`", (ROOT / page).read_text("utf-8"))
    ]
    assert found
    for each in found:
        _knows(each)


def test_whatever_a_page_installs_is_here() -> None:
    """Each ``pip install`` names a folder of the repository and extras that it has."""
    for page in pages():
        text = (ROOT / page).read_text("utf-8")
        for what in re.findall(r"pip install '?([^\s'`]+)", text):
            path, _, extras = what.partition("[")
            project = (ROOT / path / "pyproject.toml").read_text("utf-8")
            for extra in filter(None, extras.rstrip("]").split(",")):
                assert re.search(rf"^{extra} = \[", project, re.MULTILINE), (page, what)


def _knows(line: str) -> None:
    """The command of *line* exists, with all its options."""
    _, *words = shlex.split(line, comments=True)
    command = APP
    while words and isinstance(command, TyperGroup):
        name = words.pop(0)
        assert name in command.commands, line
        command = command.commands[name]
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known | {"--help"}, line
