"""From a path to what is in it, without a database."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from toolfault_collector.importers._reading import Broken
from toolfault_collector.importers._source import Source
from toolfault_collector.importers._transcript import Item, Problem, Severity
from toolfault_collector.importers.formats import AUTO, Reader, find_format, recognise

__all__ = ["find_files", "parse_file", "parse_source", "unreadable"]

SUFFIXES: Final = frozenset({".json", ".jsonl", ".ndjson"})


def find_files(paths: Sequence[Path]) -> Iterator[tuple[Path, bool] | Problem]:
    """Yield the files to import and whether each was named, directories read recursively.

    Directories give their ``.json``, ``.jsonl`` and ``.ndjson`` files in order of name, without
    following links to other directories. A file met twice is given once.
    """
    met: set[str] = set()
    for path in paths:
        if path.is_dir():
            found: Iterator[tuple[Path, bool] | Problem] = _walk(path)
        elif path.is_file():
            found = iter([(path, True)])
        else:
            reason = "not a regular file" if path.exists() else "no such file or directory"
            found = iter([Problem(path, "", reason)])
        for item in found:
            if isinstance(item, Problem):
                yield item
                continue
            real = os.path.realpath(item[0])
            if real not in met:
                met.add(real)
                yield item


def _walk(folder: Path) -> Iterator[tuple[Path, bool] | Problem]:
    problems: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=problems.append):
        folders.sort()
        for name in sorted(names):
            path = Path(root, name)
            if path.suffix.lower() in SUFFIXES and path.is_file():
                yield path, False
    for error in problems:
        yield Problem(Path(error.filename or folder), "", f"cannot be read: {error.strerror}")


def parse_file(
    path: Path, *, format_name: str = AUTO, now: int, named: bool = True
) -> Iterator[Item]:
    """Yield the conversations, events and problems of one file.

    Args:
        path: The file.
        format_name: Name of a format, or ``auto`` to recognise it.
        now: Time of the import in microseconds since the epoch.
        named: Whether the file was named by the caller; one merely met in a directory may be
            something else.

    Raises:
        ValueError: There is no format of that name.
    """
    reader = None if format_name == AUTO else find_format(format_name).read
    try:
        source = Source(path, now, doubtful=reader is not None and not named)
    except (OSError, ValueError) as error:
        yield unreadable(path, error, named=named)
        return
    yield from parse_source(source, reader, named=named)


def parse_source(source: Source, reader: Reader | None, *, named: bool) -> Iterator[Item]:
    """Yield what an opened file holds; a *reader* of None means to recognise the format."""
    path = source.path
    severity: Severity = "error" if named else "note"
    if source.layout == "empty":
        yield Problem(path, "", "the file is empty", severity)
        return
    try:
        if reader is None:
            reader = recognise(source)
            if reader is None:
                yield Problem(path, "", _unknown(source), severity)
                return
        yield from reader(source)
    except (OSError, ValueError) as error:
        yield Problem(path, "", _reason(error))
    if source.text.replaced:
        yield source.note("", "holds bytes that are not of its encoding; they were replaced")


def _unknown(source: Source) -> str:
    first = next(source.values(), None)
    if isinstance(first, Broken) and (source.layout == "document" or first.fatal):
        return f"{first.message}; skipped"
    return "not recognised as a transcript; skipped (name the format if it is one)"


def unreadable(path: Path, error: OSError | ValueError, *, named: bool) -> Problem:
    """Say why a file could not be opened."""
    return Problem(path, "", _reason(error), "error" if named else "note")


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or type(error).__name__}"
    return str(error)
