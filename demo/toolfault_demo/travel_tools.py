"""The tools of the travel concierge, declared with the SDK as any agent's tools are."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

from toolfault import tool
from toolfault_demo import parameters
from toolfault_demo.world import World

__all__ = ["travel_tools"]

# How many units of a currency one dollar buys; the demo's own invention.
_PER_DOLLAR: Final = {
    "EUR": 0.9,
    "JPY": 150.0,
    "CAD": 1.35,
    "KES": 130.0,
    "NOK": 10.5,
    "PEN": 3.7,
    "USD": 1.0,
}


def travel_tools(world: World, *, worsened: bool) -> list[Any]:
    """Return the travel tools.

    Args:
        world: What they work on.
        worsened: Whether ``get_weather`` already wants a country.
    """
    return [*_booking_tools(world), *_lookup_tools(world, worsened=worsened)]


def _booking_tools(world: World) -> list[Any]:
    @tool(model=parameters.SearchFlights, idempotent=True)
    async def search_flights(
        origin: str, destination: str, departure_date: date, passengers: int, cabin: str
    ) -> dict[str, Any]:
        """Find connections between two airports on a day."""
        await world.work("search_flights")
        flight = {"number": f"TF{100 + len(cabin)}", "cabin": cabin, "seats": passengers}
        return {"from": origin, "to": destination, "on": f"{departure_date}", "flights": [flight]}

    @tool(model=parameters.BookHotel, idempotent=False)
    def book_hotel(
        city: str, check_in: date, nights: int, room_type: str, refundable: bool
    ) -> dict[str, Any]:
        """Book a room."""
        world.work_blocking("book_hotel")
        terms = "refundable" if refundable else "final"
        return {
            "city": city,
            "from": f"{check_in}",
            "nights": nights,
            "room": room_type,
            "is": terms,
        }

    return [search_flights, book_hotel]


def _lookup_tools(world: World, *, worsened: bool) -> list[Any]:
    weather = parameters.GetWeatherForCountry if worsened else parameters.GetWeather

    @tool(model=weather, coerce=True, idempotent=True)
    async def get_weather(
        city: str, days: int, units: str, country: str | None = None
    ) -> dict[str, Any]:
        """Say what the weather will be."""
        await world.work("get_weather")
        warm = 21 if units == "celsius" else 70
        return {"city": city, "country": country, "forecast": [warm] * days}

    @tool(model=parameters.ConvertCurrency, idempotent=True)
    def convert_currency(amount: float, from_currency: str, to_currency: str) -> float:
        """Convert an amount."""
        world.work_blocking("convert_currency")
        return round(amount / _PER_DOLLAR[from_currency] * _PER_DOLLAR[to_currency], 2)

    return [get_weather, convert_currency]
