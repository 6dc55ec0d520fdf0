"""Tracebacks as tuples in the caller, as text on the sender thread.

Formatting a traceback is most of what other clients cost their host (it reads source files and
builds the text); walking the frames costs a hundredth of that. Frames are kept as file, line and
function: no frame object, hence no local variable, outlives the capture.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import NamedTuple

from toolfault.errors import redact_text, redaction_policy

_FRAMES_KNOWN = 2_000
_LINE_CHARS = 500
_FRAMES_KEPT = 100
_FRAMES_WALKED = 2_000
_CHAIN_KEPT = 8
_TEXT_CHARS = 16_000

Frame = tuple[str, int, str]


class Raised(NamedTuple):
    """One exception of a chain, without the exception.

    Attributes:
        name: Qualified class name.
        module: Module of the class.
        message: Its text, redacted by the sender.
        frames: File, line and function, outermost first.
        omitted: Frames left out in the middle.
        link: How it led to the next one: ``cause``, ``context``, or ``""`` for the last.
        quotes_values: Whether it is of a library of validation, whose texts quote values.
    """

    name: str
    module: str
    message: str
    frames: tuple[Frame, ...]
    omitted: int
    link: str
    quotes_values: bool = False


def walk(traceback: TracebackType | None) -> tuple[tuple[Frame, ...], int]:
    """Return the first and last frames of a traceback and how many lie between them."""
    frames: list[Frame] = []
    walked = 0
    while traceback is not None and walked < _FRAMES_WALKED:
        code = traceback.tb_frame.f_code
        frames.append((code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
        walked += 1
    if len(frames) <= _FRAMES_KEPT:
        return tuple(frames), 0
    half = _FRAMES_KEPT // 2
    return (*frames[:half], *frames[-half:]), len(frames) - _FRAMES_KEPT


def raised_chain(error: BaseException) -> list[tuple[BaseException, str]]:
    """Return an exception and what led to it, oldest first, each with its link to the next."""
    chain: list[tuple[BaseException, str]] = [(error, "")]
    while len(chain) < _CHAIN_KEPT:
        present = chain[-1][0]
        cause, context = present.__cause__, present.__context__
        if cause is not None:
            before, link = cause, "cause"
        elif context is not None and not present.__suppress_context__:
            before, link = context, "context"
        else:
            break
        if any(known is before for known, _ in chain):  # it is its own cause
            break
        chain.append((before, link))
    chain.reverse()
    return chain


_LINKS = {
    "cause": "The above exception was the direct cause of the following exception:",
    "context": "During handling of the above exception, another exception occurred:",
}


def traceback_text(chain: tuple[Raised, ...]) -> str:
    """Return the chain as Python prints it, source lines included, head and tail kept.

    Args:
        chain: Exceptions, oldest first, their names and messages redacted.
    """
    parts: list[str] = []
    for raised in chain:
        if raised.frames:
            parts.append("Traceback (most recent call last):\n")
        half = len(raised.frames) // 2 if raised.omitted else -1
        for index, (file, line, function) in enumerate(raised.frames):
            if index == half:
                parts.append(f"  [... {raised.omitted} frames ...]\n")
            parts.append(_frame_text(file, line, function))
        builtin = raised.module in ("builtins", "__main__")
        name = raised.name if builtin else f"{raised.module}.{raised.name}"
        parts.append(f"{name}: {raised.message}\n" if raised.message else f"{name}\n")
        if raised.link:
            parts.append(f"\n{_LINKS[raised.link]}\n\n")
    return head_and_tail("".join(parts), _TEXT_CHARS)


def head_and_tail(text: str, limit: int) -> str:
    """Return ``text`` with its middle cut out so that at most ``limit`` characters are left."""
    if len(text) <= limit:
        return text
    marker = f"\n[... {len(text) - limit} characters ...]\n"
    head = (limit - len(marker)) // 3
    return text[:head] + marker + text[len(text) - (limit - len(marker) - head) :]


_texts: dict[Frame, tuple[object, str]] = {}


def _frame_text(file: str, number: int, function: str) -> str:
    """Return place and source line of a frame, redacted: code that was made may be named by data.

    ``linecache`` reads and keeps whole files in the host's memory; here a file is read up to the
    line asked for, and a bounded number of texts is remembered.
    """
    policy = redaction_policy()
    known = _texts.get((file, number, function))
    if known is None or known[0] is not policy:
        if len(_texts) >= _FRAMES_KNOWN:
            _texts.clear()
        text = redact_text(f'  File "{file}", line {number}, in {function}') + "\n"
        source = redact_text(_read(file, number))
        text += f"    {source}\n" if source else ""
        known = _texts[(file, number, function)] = (policy, text)
    return known[1]


def _read(file: str, number: int) -> str:
    # Interactive cells and generated code exist only where somebody put them.
    linecache = sys.modules.get("linecache")
    if linecache is not None and file in linecache.cache:
        text = linecache.getline(file, number)
        return text.strip()[:_LINE_CHARS] if isinstance(text, str) else ""
    if file.startswith("<"):
        return ""
    try:
        with open(file, "rb") as lines:  # noqa: PTH123 - paths are texts here
            for _ in range(number - 1):
                lines.readline(1 << 16)
            return lines.readline(1 << 16).decode("utf-8", "replace").strip()[:_LINE_CHARS]
    except OSError:
        return ""
