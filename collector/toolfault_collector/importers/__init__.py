"""Importers: real history out of transcripts, with the same numbers as the source itself.

``import_paths`` stores, ``parse_file`` only reads. A file goes through these modules, in order:

- ``files`` finds it and tells how it is written; ``archives`` unpacks it, ``json_values`` reads it
  value by value.
- ``formats`` has one file per format, which recognises its files (``detect``) and yields their
  conversations (``read``). ``items`` is the protocol: what a format is and what it yields.
- ``assembly`` pairs the calls and results that a format finds, keeps their order and turns, and
  reduces their ``arguments``; ``classify.soft`` marks successes that look like failures.
- ``events`` makes events of protocol v1 of a conversation; ``classify`` gives failures their code.
- ``run`` stores the events in batches and reports.

Adding a format is one new file in ``formats`` and one line in its list. ``docs/importing.md``
describes the formats and what counts as a failure in each, ``docs/classification.md`` how text
becomes a code.
"""

from __future__ import annotations

from toolfault_collector.importers.archives import STDIN
from toolfault_collector.importers.files import Problem
from toolfault_collector.importers.formats import AUTO, FORMATS
from toolfault_collector.importers.items import Call, Conversation, EventBatch, Format, Recognition
from toolfault_collector.importers.run import ImportReport, Progress, import_paths, parse_file

__all__ = [
    "AUTO",
    "FORMATS",
    "STDIN",
    "Call",
    "Conversation",
    "EventBatch",
    "Format",
    "ImportReport",
    "Problem",
    "Progress",
    "Recognition",
    "import_paths",
    "parse_file",
]
