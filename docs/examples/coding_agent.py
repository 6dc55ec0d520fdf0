"""A coding agent without a model: it asks toolfault what to fix first and edits the source.

It has the MCP tools and a folder of Python files, nothing else. What a model would decide is
written down here: which class belongs to a tool, what the T of a patch is, where a line goes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client

__all__ = ["Applied", "NotKnownHowError", "accept", "apply_fixes", "ask", "offer"]


class NotKnownHowError(Exception):
    """This agent does not know how to apply a fix."""


@dataclass(frozen=True)
class Applied:
    """One fix that stands in the source now, and what toolfault predicts of it."""

    tool: str
    argument: str
    remedy: str
    chains: int  # that would not have begun
    calls_saved: float


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool of toolfault and read its answer."""
    result = await client.call_tool(tool, arguments)
    (block,) = result.content
    assert block.type == "text"
    if result.is_error:
        raise RuntimeError(block.text)
    return dict(json.loads(block.text))


async def apply_fixes(client: Client, source: Path, *, number: int) -> list[Applied]:
    """Apply the first fixes for which there is a remedy to the files in *source*.

    Args:
        client: Connected to toolfault.
        source: Folder of the agents' Python files.
        number: How many to apply.
    """
    applied: list[Applied] = []
    for row in (await ask(client, "fix_next"))["fixes"]:
        if len(applied) == number:
            break
        # The texts are data: they name what to edit, and nothing in them is followed.
        texts = row["untrusted"]
        if row.get("remedy", "open") == "open" or "mended_by" in texts:
            continue
        if row["remedy"] == "expose":
            offer(source, texts["tool"])
        else:
            accept(source, texts["tool"], texts["argument"], texts["patch_of_pydantic"])
        applied.append(
            Applied(
                texts["tool"],
                texts.get("argument", ""),
                row["remedy"],
                row["chains"],
                row["calls_saved"],
            )
        )
    return applied


def accept(source: Path, tool: str, argument: str, patch: str) -> None:
    """Put the pydantic patch in the place of the argument's line in the model of *tool*."""
    model = _model_of(source, tool)
    for path in sorted(source.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        body = re.search(rf"^class {model}\(.*?(?=^class |\Z)", text, re.MULTILINE | re.DOTALL)
        if body is None:
            continue
        line = re.search(rf"^    {argument}: (?P<type>[^=\n]+?)(?: = .*)?$", body[0], re.MULTILINE)
        if line is None:
            raise NotKnownHowError(f"{model} has no argument {argument} in one line.")
        mended = body[0].replace(line[0], f"    {_filled(patch, line['type'])}")
        path.write_text(_with_imports(text.replace(body[0], mended)), encoding="utf-8")
        return
    raise NotKnownHowError(f"There is no class {model}.")


def _model_of(source: Path, tool: str) -> str:
    """Return the class of parameters that *tool* is declared with."""
    declared = re.compile(rf"@tool\(model=parameters\.(\w+)[^\n]*\)\n\s*(?:async )?def {tool}\(")
    for path in sorted(source.glob("*.py")):
        if found := declared.search(path.read_text(encoding="utf-8")):
            return found[1]
    raise NotKnownHowError(f"No file declares {tool} with a model.")


def _filled(patch: str, kind: str) -> str:
    """Return *patch* with the type that the argument has in the place of T."""
    item = re.fullmatch(r"list\[(.*)\]", kind)
    for placeholder, meant in (
        ("list[T]", f"list[{item[1]}]" if item else "list"),
        ("[T,", f"[{kind},"),
        (": T =", f": {kind} ="),
    ):
        patch = patch.replace(placeholder, meant)
    return patch


def _with_imports(text: str) -> str:
    """Return *text* with what the patches need imported after its first import."""
    needed = "import json\n\nfrom pydantic import AliasChoices, BeforeValidator, Field\n"
    if needed in text:
        return text
    first = re.search(r"^from (?!__future__)\S+ import .*$\n|^import .*$\n", text, re.MULTILINE)
    assert first is not None, "a file of models imports something"
    return text[: first.start()] + needed + text[first.start() :]


def offer(source: Path, tool: str) -> None:
    """Offer the tool that the model keeps calling, where the registry is made."""
    for path in sorted(source.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "ToolRegistry(\n            [" not in text:
            continue
        text = text.replace("ToolRegistry(\n            [", f"ToolRegistry(\n            [{tool},")
        text += (
            f'\n\n@tool\ndef {tool}(q: str) -> str:\n    """Look something up."""\n    return q\n'
        )
        path.write_text(text, encoding="utf-8")
        return
    raise NotKnownHowError("No file makes the registry of the tools.")
