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
    choice,
    kept_columns,
    redirected,
)
from toolfault_dashboard.pages.shared.frame import Context, View
from toolfault_dashboard.pages.shared.lines import rows_behind
from toolfault_dashboard.pages.shared.numbered import Number, numbered
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.queries.fixes.messages import (
    MessageGroup,
    MessageRow,
    most_frequent,
)

__all__ = ["MESSAGES", "message_line", "router"]


@dataclass(frozen=True, slots=True)
class MessageLine:
    """One wording."""

    row: Doc[MessageRow, "What is known about it."]
    code: Doc[str, "The code of its failures: several codes may have the same wording."]
    tool: Doc[str, "The tool of its failures."]
    drawn: Doc[Estimate | None, "The interval of its recovery, drawn."]
    mark: Doc[str, "`best`, `worst`, or empty."]
    href: Doc[str, "The failures that carried it; empty if no query can name them."]


@dataclass(frozen=True, slots=True)
class MessageBlock:
    """The wordings of one tool and code."""

    tool: Doc[str, "The tool."]
    code: Doc[str, "The code."]
    failures: Doc[int, "Failures of that tool and code."]
    lines: Doc[Drawn, "Its most frequent wordings, best first."]
    texts: Doc[int, "Wordings in all."]
    single: Doc[bool, "Whether it has no more than one."]


@dataclass(frozen=True, slots=True)
class MessagesContext(Context):
    """What `messages.html` shows."""

    template: ClassVar[str] = "messages.html"

    view: Doc[View, "The query bar."]
    blocks: Doc[tuple[MessageBlock, ...], "Tools and codes, most failures first."]
    single: Doc[Drawn, "The wordings of those that have no more than one."]
    total: Doc[int, "Tools and codes in all."]
    pages: Doc[dict[str, str], "Addresses of the pages before and after; empty at the ends."]
    columns: Doc[ColumnChoice, "Columns of every table."]
    csv: Doc[str, "All wordings as CSV."]


router = APIRouter()

BLOCKS: Final = 20
LINES: Final = 8
MESSAGES: Final = Table(
    Column("message", "Message", "wording", "row.message", style="cell-text"),
    Column("failures", "Failures", "count", "row.failures", usual=True),
    Column("recovery", "Fixed by the next call", "rate", "row.recovery", usual=True, n="whole",
           width=130, head="rate", nothing="not enough data"),
    Column("answered", "Answered", "count", "row.answered", usual=True),
    Column("fixed", "Fixed", "count", "row.fixed", usual=False),
    Column("when_answered", "Fixed of answered", "rate_text", "row.when_answered",
           usual=False, n="whole", head="rate", nothing="not enough data"),
    Column("last", "Last seen", "moment", "row.last_at", usual=True, style="nowrap", head="when"),
    file="messages", named="messages",
)  # fmt: skip


@router.get("/messages", name="messages")
def messages(ask: Asked, page: Number = 1) -> Response:
    """Render the wordings by tool and code."""
    if (answer := redirected(ask, "/messages", {"": MESSAGES})) is not None:
        return answer
    skip = (page - 1) * BLOCKS
    groups, total = most_frequent(ask.conn, ask.scope, most=BLOCKS, skip=skip)
    number, pages = numbered(ask, page, total, BLOCKS)
    if number != page:
        return messages(ask, number)
    columns = choice(ask, MESSAGES)
    blocks = tuple(_block(ask, group, columns.shown) for group in groups)
    context = MessagesContext(
        view=ask.view("/messages", **kept_columns(ask, MESSAGES)),
        blocks=blocks,
        single=MESSAGES.drawn(
            (line for block in blocks if block.single for line in block.lines), columns.shown
        ),
        total=total,
        pages=pages,
        columns=columns,
        csv=ask.export("/messages.csv"),
    )
    return ask.render(context, title="Messages")


def _block(ask: Ask, group: MessageGroup, shown: tuple[str, ...]) -> MessageBlock:
    return MessageBlock(
        tool=group.tool,
        code=group.code,
        failures=group.failures,
        lines=MESSAGES.drawn((message_line(ask, group, row) for row in _shown(group)), shown),
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
        tool=group.tool,
        drawn=estimate(recovery.value, recovery.low, recovery.high, scale=1.0),
        mark="best" if row == group.best else "worst" if row == group.worst else "",
        href=rows_behind(ask, row.query),
    )
