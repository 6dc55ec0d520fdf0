"""Messages: which wording leads to a call that succeeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter
from starlette.responses import Response

from toolfault_dashboard.charts import Estimate, estimate
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.columns import (
    ColumnChoice,
    Columns,
    choice,
    kept_columns,
    redirected,
)
from toolfault_dashboard.pages.shared.frame import Context, View
from toolfault_dashboard.pages.shared.lines import rows_behind
from toolfault_dashboard.pages.shared.numbered import Number, numbered
from toolfault_dashboard.queries.fixes.messages import MessageGroup, MessageRow, most_frequent

__all__ = ["message_line", "router"]


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
class MessagesContext(Context):
    """What `messages.html` shows."""

    template: ClassVar[str] = "messages.html"

    view: Doc[View, "The query bar."]
    blocks: Doc[tuple[MessageBlock, ...], "Tools and codes, most failures first."]
    total: Doc[int, "Tools and codes in all."]
    pages: Doc[dict[str, str], "Addresses of the pages before and after; empty at the ends."]
    columns: Doc[ColumnChoice, "Columns of every table."]
    csv: Doc[str, "All wordings as CSV."]


router = APIRouter()

BLOCKS: Final = 20
LINES: Final = 8
COLUMNS: Final = Columns(
    "cols",
    {
        "failures": "Failures",
        "recovery": "Fixed by the next call",
        "answered": "Answered",
        "fixed": "Fixed",
        "when_answered": "Fixed of answered",
        "last": "Last seen",
    },
    ("failures", "recovery", "answered", "last"),
)


@router.get("/messages", name="messages")
def messages(ask: Asked, page: Number = 1) -> Response:
    """Render the wordings by tool and code."""
    if (answer := redirected(ask, "/messages", {"": COLUMNS})) is not None:
        return answer
    skip = (page - 1) * BLOCKS
    groups, total = most_frequent(ask.conn, ask.scope, most=BLOCKS, skip=skip)
    number, pages = numbered(ask, page, total, BLOCKS)
    if number != page:
        return messages(ask, number)
    context = MessagesContext(
        view=ask.view("/messages", **kept_columns(ask, COLUMNS)),
        blocks=tuple(_block(ask, group) for group in groups),
        total=total,
        pages=pages,
        columns=choice(ask, COLUMNS),
        csv=ask.export("/messages.csv"),
    )
    return ask.render(context, title="Messages")


def _block(ask: Ask, group: MessageGroup) -> MessageBlock:
    return MessageBlock(
        tool=group.tool,
        code=group.code,
        failures=group.failures,
        lines=tuple(message_line(ask, group, row) for row in _shown(group)),
        texts=len(group.rows),
        single=len(group.rows) < 2,
    )


def _shown(group: MessageGroup) -> list[MessageRow]:
    """Return the most frequent wordings, and those that are marked, best first."""
    marked = (group.best, group.worst)
    ranked = sorted(group.rows, key=lambda row: (row not in marked, -row.failures))
    kept = ranked[:LINES]
    return [row for row in group.rows if row in kept]


def message_line(ask: Ask, group: MessageGroup, row: MessageRow) -> MessageLine:
    """Return *row* with its links; *group* says whether it is the best or worst of its code."""
    recovery = row.recovery
    return MessageLine(
        row=row,
        code=group.code,
        drawn=estimate(recovery.value, recovery.low, recovery.high, scale=1.0),
        mark="best" if row == group.best else "worst" if row == group.worst else "",
        href=rows_behind(ask, row.query),
    )
