"""What the agents set out to do: the right tool calls of a conversation, turn by turn."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from toolfault_demo.chance import DAY
from toolfault_demo.problems import Phase

__all__ = ["FALLBACKS", "PLANS", "Plan", "Step", "fallback_for"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to get done with one tool.

    Attributes:
        tool: Name of the tool.
        arguments: The right arguments.
    """

    tool: str
    arguments: Mapping[str, Any]


# Turns in order; the steps of one turn are called in parallel.
Plan = tuple[tuple[Step, ...], ...]

_CITIES: Final = {
    "Lisbon": ("LIS", "EUR", "PT"),
    "Kyoto": ("KIX", "JPY", "JP"),
    "Toronto": ("YYZ", "CAD", "CA"),
    "Nairobi": ("NBO", "KES", "KE"),
    "Oslo": ("OSL", "NOK", "NO"),
    "Lima": ("LIM", "PEN", "PE"),
}
_PEOPLE: Final = ("ada", "ben", "chidi", "dora", "emre", "fay")
_FILES: Final = ("src/cart.py", "src/orders.py", "src/search.py")
_SERVICES: Final = ("orders", "stock", "search", "billing")
_CUSTOMERS: Final = 9_000


def _day(now: float, rng: random.Random, horizon: int = 90) -> datetime:
    return datetime.fromtimestamp(now + rng.randint(2, horizon) * DAY, UTC)


def _address(rng: random.Random) -> str:
    return f"{rng.choice(_PEOPLE)}@example.com"


def _flight(now: float, rng: random.Random, place: str) -> Step:
    start = rng.choice([city for city in _CITIES if city != place])
    return Step(
        "search_flights",
        {
            "origin": _CITIES[start][0],
            "destination": _CITIES[place][0],
            "departure_date": _day(now, rng).date().isoformat(),
            "passengers": rng.randint(1, 4),
            "cabin": rng.choice(["economy", "economy", "premium", "business"]),
        },
    )


def _hotel(now: float, rng: random.Random, place: str) -> Step:
    return Step(
        "book_hotel",
        {
            "city": place,
            "check_in": _day(now, rng).date().isoformat(),
            "nights": rng.randint(1, 9),
            "room_type": rng.choice(["single", "double", "suite"]),
            "refundable": rng.random() < 0.5,
        },
    )


def _weather(rng: random.Random, place: str, phase: Phase) -> Step:
    arguments: dict[str, Any] = {"city": place, "days": rng.randint(1, 7)}
    if phase.worsened:
        arguments["country"] = _CITIES[place][2]
    return Step("get_weather", arguments)


def _money(rng: random.Random, place: str) -> Step:
    currency = _CITIES[place][1]
    return Step(
        "convert_currency",
        {"amount": rng.randint(20, 900) + 0.5, "from_currency": "USD", "to_currency": currency},
    )


def _event(now: float, rng: random.Random, title: str) -> Step:
    moment = _day(now, rng, 30).replace(hour=9, minute=0, second=0, microsecond=0)
    return Step(
        "create_calendar_event",
        {
            "title": title,
            "start": (moment + timedelta(hours=rng.randint(0, 8))).isoformat(),
            "duration_minutes": rng.choice([30, 45, 60, 90]),
            "attendees": sorted({_address(rng), _address(rng)}),
        },
    )


def _mail(rng: random.Random, subject: str) -> Step:
    body = "As agreed; details below."
    return Step("send_email", {"to": [_address(rng)], "subject": subject, "body": body})


def _request(rng: random.Random) -> Step:
    service = rng.choice(_SERVICES)
    # Made at run time: nothing that looks like a credential stands in a file.
    secret = f"{rng.getrandbits(96):024x}"
    return Step(
        "http_request",
        {
            "url": f"https://{service}.example.com/v2/status",
            "method": "GET",
            "headers": {"Authorization": f"Bearer sk-{secret}", "Accept": "application/json"},
            "timeout_seconds": rng.choice([5, 10, 30]),
            "follow_redirects": rng.random() < 0.7,
        },
    )


def _query(rng: random.Random) -> Step:
    customer = rng.randint(1, _CUSTOMERS)
    return Step(
        "run_sql",
        {
            "query": f"SELECT id, state FROM orders WHERE customer_id = {customer}",  # noqa: S608
            "database": rng.choice(["sales", "support"]),
            "limit": rng.choice([10, 50, 100]),
        },
    )


def _ticket(rng: random.Random) -> Step:
    component = rng.choice(["billing", "login", "search", "shipping"])
    return Step(
        "create_ticket",
        {
            "title": f"Customer cannot use {component}",
            "priority": rng.choice(["low", "normal", "high"]),
            "component": component,
            "customer_id": f"C-{rng.randint(1, _CUSTOMERS):04d}",
        },
    )


def _read(path: str) -> Step:
    return Step("read_file", {"path": path, "start_line": 1, "max_lines": 200})


def _patch(path: str) -> Step:
    diff = (
        f"--- a/{path}\n+++ b/{path}\n@@ -1,3 +1,3 @@\n"
        " def total(items):\n-    return total\n+    return sum(items)\n \n"
    )
    return Step("apply_patch", {"path": path, "diff": diff})


def travel_plan(now: float, rng: random.Random, phase: Phase) -> Plan:
    """Plan a trip: compare the weather of some cities at once, then book and tell people."""
    places = rng.sample(list(_CITIES), 3)
    turns: list[tuple[Step, ...]] = []
    if rng.random() < 0.5:
        turns.append(tuple(_weather(rng, place, phase) for place in places[: rng.randint(1, 3)]))
    turns.append((_flight(now, rng, places[0]),))
    if rng.random() < 0.75:
        turns.append((_hotel(now, rng, places[0]),))
    if rng.random() < 0.55:
        turns.append((_money(rng, places[0]),))
    if rng.random() < 0.5:
        turns.append((_event(now, rng, f"Trip to {places[0]}"),))
    if rng.random() < 0.6:
        turns.append((_mail(rng, f"Your trip to {places[0]}"),))
    return tuple(turns)


def code_plan(_now: float, rng: random.Random, _phase: Phase) -> Plan:
    """Mend something: read files at once, patch one, see whether the service is well."""
    paths = rng.sample(_FILES, rng.randint(1, 3))
    turns: list[tuple[Step, ...]] = [tuple(_read(path) for path in paths)]
    turns.extend((_patch(path),) for path in paths[: rng.randint(1, 2)])
    if rng.random() < 0.7:
        turns.append((_request(rng),))
    if rng.random() < 0.2:
        turns.append((_mail(rng, f"Change of {paths[0]}"),))
    return tuple(turns)


def support_plan(_now: float, rng: random.Random, _phase: Phase) -> Plan:
    """Help a customer: look things up, perhaps search the web in vain, open a ticket, answer."""
    turns: list[tuple[Step, ...]] = [(_query(rng),)]
    if rng.random() < 0.25:
        turns.append((Step("web_search", {"q": "error code 4012 payment declined"}),))
    if rng.random() < 0.08:
        turns.append((Step("delete_records", {"table": "orders", "id": rng.randint(1, 99)}),))
    if rng.random() < 0.4:
        turns.append((_request(rng),))
    if rng.random() < 0.85:
        turns.append((_ticket(rng),))
    if rng.random() < 0.65:
        turns.append((_mail(rng, "Your question"),))
    return tuple(turns)


PLANS: Final[Mapping[str, Callable[[float, random.Random, Phase], Plan]]] = {
    "travel-concierge": travel_plan,
    "code-helper": code_plan,
    "support-desk": support_plan,
}

# What an agent may try instead of a tool that keeps failing.
FALLBACKS: Final[Mapping[str, Callable[[random.Random], Step]]] = {
    "search_flights": _request,
    "book_hotel": _request,
    "get_weather": _request,
    "web_search": _query,
    "apply_patch": lambda rng: _read(rng.choice(_FILES)),
    "run_sql": _ticket,
    "http_request": _query,
    "create_ticket": lambda rng: _mail(rng, "Please open a ticket for me"),
}


def fallback_for(tool: str, rng: random.Random) -> Step | None:
    """Return what to try instead of ``tool``, or None when nothing comes to mind."""
    make = FALLBACKS.get(tool)
    return None if make is None else make(rng)
