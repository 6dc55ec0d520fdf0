"""The parameters of the demo's tools: strict, as careful tools are.

Strict models reject ``"true"`` for a boolean and an unknown field; what is rejected is what the
dashboard is about.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "ApplyPatch",
    "BookHotel",
    "ConvertCurrency",
    "CreateCalendarEvent",
    "CreateTicket",
    "GetWeather",
    "GetWeatherForCountry",
    "HttpRequest",
    "ReadFile",
    "RunSql",
    "SearchFlights",
    "SendEmail",
]

Airport = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
Day = Annotated[date, Field(strict=False)]
Moment = Annotated[datetime, Field(strict=False)]


class Strict(BaseModel):
    """Takes each value only in its own type and no field it does not know."""

    model_config = ConfigDict(strict=True, extra="forbid")


class HttpRequest(Strict):
    """One HTTP request to a service the agent may reach."""

    url: str = Field(pattern=r"^https?://")
    method: Literal["GET", "POST", "PUT", "DELETE"] = "GET"
    headers: dict[str, str] = Field(default_factory=dict)
    timeout_seconds: int = Field(30, ge=1, le=120)
    follow_redirects: bool = True


class SearchFlights(Strict):
    """Connections between two airports on a day."""

    origin: Airport
    destination: Airport
    departure_date: Day
    passengers: int = Field(1, ge=1, le=9)
    cabin: Literal["economy", "premium", "business"] = "economy"


class BookHotel(Strict):
    """A room for some nights."""

    city: str
    check_in: Day
    nights: int = Field(ge=1, le=30)
    room_type: Literal["single", "double", "suite"]
    refundable: bool


class CreateCalendarEvent(Strict):
    """An entry in the calendar of everybody who attends."""

    title: str = Field(max_length=120)
    start: Moment
    duration_minutes: int = Field(ge=5, le=480)
    attendees: list[str]


class RunSql(Strict):
    """A read-only query against one of the reporting databases."""

    query: str
    database: Literal["sales", "support", "inventory"]
    limit: int = Field(100, ge=1, le=500)


class SendEmail(Strict):
    """A message to some people."""

    to: list[str]
    subject: str = Field(max_length=160)
    body: str
    priority: Literal["low", "normal", "high"] = "normal"


class ReadFile(Strict):
    """A part of a file of the workspace."""

    path: str
    start_line: int = Field(1, ge=1)
    max_lines: int = Field(200, ge=1, le=2000)


class ApplyPatch(Strict):
    """A unified diff for one file of the workspace."""

    path: str
    diff: str


class GetWeather(Strict):
    """The weather of the coming days."""

    city: str
    days: int = Field(3, ge=1, le=10)
    units: Literal["celsius", "fahrenheit"] = "celsius"


class GetWeatherForCountry(GetWeather):
    """The later schema: the country became required and no agent was told."""

    country: str = Field(pattern=r"^[A-Z]{2}$")


class ConvertCurrency(Strict):
    """An amount in another currency."""

    amount: float = Field(gt=0)
    from_currency: Currency
    to_currency: Currency


class CreateTicket(Strict):
    """A ticket for the people who can do what the agent cannot."""

    title: str = Field(max_length=120)
    priority: Literal["low", "normal", "high"]
    component: Literal["billing", "login", "search", "shipping"]
    customer_id: str = Field(pattern=r"^C-\d{4}$")
