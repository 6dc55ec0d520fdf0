"""Fix next and Messages: what to mend, and which wording helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc

from toolfault_dashboard.analysis.fixes.patches import Patch
from toolfault_dashboard.charts import Estimate
from toolfault_dashboard.contexts.shell import ColumnChoice, Link, View
from toolfault_dashboard.queries.fixes.fix_next import FixRow
from toolfault_dashboard.queries.fixes.messages import MessageRow
from toolfault_dashboard.writes.picked_fixes import PickedFix

__all__ = [
    "FixLine",
    "FixNextContext",
    "MessageBlock",
    "MessageLine",
    "MessagesContext",
    "PickedLine",
]


@dataclass(frozen=True, slots=True)
class PickedLine:
    """One thing to mend that somebody added by hand."""

    row: Doc[PickedFix, "What is stored."]
    title: Doc[str, "What to do, one sentence."]
    place: Doc[str, "Where the ranking of the view has it, in words."]
    predicted: Doc[str, "What it was predicted to save when it was added, in words."]
    realised: Doc[str, "What it has saved since its tool was changed, and whether that was right."]
    failure: Doc[str, "The failure it was seen on."]
    href: Doc[str, "The failures behind it; empty if no query can name them."]


@dataclass(frozen=True, slots=True)
class FixLine:
    """One thing to mend."""

    row: Doc[FixRow, "What was found."]
    patches: Doc[tuple[Patch, ...], "Ways to mend it; none where no remedy is known."]
    share: Doc[float, "Its calls as a share of those of the first line, 0 to 1."]
    calls: Doc[str, "What ranks it: calls saved or, where no remedy is known, spent, in words."]
    interval: Doc[str, "Their interval; empty where there is none."]
    saved: Doc[str, "Calls saved per week, or in the window where these are few; empty if unknown."]
    spent: Doc[str, "Calls spent, likewise; empty where other lines have them."]
    since: Doc[str, "What it has saved since a change of its tool; empty without one."]
    also: Doc[str, "How many of its failures stand in other lines too; empty if none."]
    others: Doc[tuple[Link, ...], "Those lines by their numbers."]
    spared: Doc[str, "The same without the change's name; empty without one."]
    first: Doc[str, "What the model called before it succeeded, in a sentence; empty if nothing."]
    href: Doc[str, "The failures behind it; empty if no query can name them."]
    messages: Doc[str, "What its failures said, message by message; empty likewise."]
    tool: Doc[str, "The page of its tool."]
    added: Doc[str, "Who added it by hand too; empty if nobody did."]


@dataclass(frozen=True, slots=True)
class FixNextContext:
    """`fix_next.html`."""

    view: Doc[View, "The query bar."]
    fixes: Doc[tuple[FixLine, ...], "What to mend, most calls first."]
    rare: Doc[tuple[FixLine, ...], "What was seen once or twice, beside that."]
    rare_cost: Doc[int, "Calls spent on these."]
    covered: Doc[str, "How many of all calls spent the lists cover, as a sentence."]
    ignored: Doc[
        Link | None, "What is left out since it is ignored, and its cost; None if nothing."
    ]
    picked: Doc[tuple[PickedLine, ...], "What people added by hand, newest first."]
    done: Doc[str, "What was just done, as a sentence; else empty."]
    mended: Doc[tuple[FixLine, ...], "What has not come back since a change."]
    failures: Doc[int, "Failures looked at."]
    complete: Doc[bool, "Whether all failures of the view were looked at."]
    looked_from: Doc[int | None, "Where not all were: since when, as far as they have times."]
    total: Doc[int, "How many the whole list has, with what was seen once or twice and is fixed."]
    pages: Doc[dict[str, str], "Addresses of the pages before and after; empty at the ends."]
    csv: Doc[str, "This list as CSV."]
    picked_csv: Doc[str, "What was added by hand as CSV."]


@dataclass(frozen=True, slots=True)
class MessageLine:
    """One wording."""

    row: Doc[MessageRow, "What is known about it."]
    code: Doc[str, "The code of its failures: several codes may have the same wording."]
    drawn: Doc[Estimate | None, "The interval of its recovery, drawn."]
    mark: Doc[str, "`best`, `worst`, or empty."]
    href: Doc[str, "The failures that carried it; empty if no query can name them."]


@dataclass(frozen=True, slots=True)
class MessageBlock:
    """The wordings of one tool and code."""

    tool: Doc[str, "The tool."]
    code: Doc[str, "The code."]
    failures: Doc[int, "Failures of that tool and code."]
    lines: Doc[tuple[MessageLine, ...], "Its most frequent wordings, best first."]
    texts: Doc[int, "Wordings in all."]
    single: Doc[bool, "Whether it has no more than one."]


@dataclass(frozen=True, slots=True)
class MessagesContext:
    """`messages.html`."""

    view: Doc[View, "The query bar."]
    blocks: Doc[tuple[MessageBlock, ...], "Tools and codes, most failures first."]
    total: Doc[int, "Tools and codes in all."]
    pages: Doc[dict[str, str], "Addresses of the pages before and after; empty at the ends."]
    columns: Doc[ColumnChoice, "Columns of every table."]
    csv: Doc[str, "All wordings as CSV."]
