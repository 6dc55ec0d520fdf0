"""Calendar, mail and tickets: the tools of more than one agent."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from toolfault import Audience, ToolError, ToolErrorCode, tool
from toolfault_demo import parameters
from toolfault_demo.world import World

__all__ = ["office_tools"]

_SIGNED_OUT: Final = 0.006
_PRIORITIES: Final = ("low", "normal", "high")
_COMPONENTS: Final = ("billing", "login", "search", "shipping")


def office_tools(world: World, *, all_at_once: bool) -> list[Any]:
    """Return the office tools.

    Args:
        world: What they work on.
        all_at_once: Whether ``create_ticket`` reports every problem of its arguments at once or
            one with each attempt.
    """
    ticket = _ticket_tool(world) if all_at_once else _ticket_tool_one_by_one(world)
    return [_calendar_tool(world), _mail_tool(world), ticket]


def _calendar_tool(world: World) -> Any:
    @tool(model=parameters.CreateCalendarEvent, idempotent=False)
    def create_calendar_event(
        title: str, start: datetime, duration_minutes: int, attendees: list[str]
    ) -> dict[str, Any]:
        """Enter a meeting."""
        world.work_blocking("create_calendar_event")
        return {"title": title, "start": f"{start}", "length": duration_minutes, "with": attendees}

    return create_calendar_event


def _mail_tool(world: World) -> Any:
    @tool(model=parameters.SendEmail, idempotent=False)
    def send_email(to: list[str], subject: str, body: str, priority: str) -> dict[str, Any]:
        """Send a message."""
        world.work_blocking("send_email")
        if world.rng.random() < _SIGNED_OUT:
            raise ToolError(
                "send_email",
                "The mailbox is signed out. Ask the person to sign in again.",
                ToolErrorCode.INVALID_INPUT,
                audience=Audience.USER,
            )
        return {"sent_to": len(to), "subject": subject, "priority": priority, "size": len(body)}

    return send_email


def _ticket_tool(world: World) -> Any:
    @tool(name="create_ticket", model=parameters.CreateTicket, idempotent=False)
    def create_ticket(
        title: str, priority: str, component: str, customer_id: str
    ) -> dict[str, Any]:
        """Open a ticket."""
        world.work_blocking("create_ticket")
        return {"title": title, "queue": f"{component}/{priority}", "customer": customer_id}

    return create_ticket


def _ticket_tool_one_by_one(world: World) -> Any:
    """Return the old tool: loose types, and checks by hand that stop at the first problem."""

    @tool(name="create_ticket", idempotent=False)
    def create_ticket(
        title: str, priority: str, component: str, customer_id: str
    ) -> dict[str, Any]:
        """Open a ticket."""
        world.work_blocking("create_ticket")
        _check_choice("priority", priority, _PRIORITIES)
        _check_choice("component", component, _COMPONENTS)
        if not re.fullmatch(r"C-\d{4}", customer_id):
            raise ToolError(
                "create_ticket",
                "`customer_id` looks like C-0042",
                ToolErrorCode.INVALID_FORMAT,
                field="customer_id",
                expected="pattern C-0000",
            )
        return {"title": title, "queue": f"{component}/{priority}", "customer": customer_id}

    return create_ticket


def _check_choice(field: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ToolError(
            "create_ticket",
            f"`{field}` must be one of {', '.join(choices)}",
            ToolErrorCode.INVALID_CHOICE,
            field=field,
            expected=" | ".join(choices),
        )
