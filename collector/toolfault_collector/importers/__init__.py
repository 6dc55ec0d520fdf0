"""Importers: real history out of transcripts, with the same numbers as the source itself.

``import_paths`` stores, ``parse_file`` only reads. ``docs/importing.md`` describes the formats,
what counts as a failure in each, and the rules by which text becomes a code.
"""

from __future__ import annotations

from toolfault_collector.importers._parse import parse_file
from toolfault_collector.importers._run import ImportReport, Progress, import_paths
from toolfault_collector.importers._transcript import Call, Conversation, EventBatch, Problem
from toolfault_collector.importers.formats import AUTO, FORMATS, Format, find_format

__all__ = [
    "AUTO",
    "FORMATS",
    "Call",
    "Conversation",
    "EventBatch",
    "Format",
    "ImportReport",
    "Problem",
    "Progress",
    "find_format",
    "import_paths",
    "parse_file",
]
