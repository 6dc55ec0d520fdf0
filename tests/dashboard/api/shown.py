"""Pages as a reader sees them: figures read out of the HTML that a server answers with."""

from __future__ import annotations

import re
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from bs4 import BeautifulSoup, Tag
from scipy.stats import binomtest
from tests.dashboard.api.asked import Asked

__all__ = [
    "Shown",
    "Table",
    "ids",
    "is_shown",
    "numbers",
    "query_of",
    "table",
    "text_of",
    "tiles",
    "whole",
]

NUMBER = re.compile(r"−?\d+(?:\.\d+)?")


def text_of(tag: Tag | None) -> str:
    """What stands in *tag*, without the places where a long name may break."""
    assert tag is not None
    return re.sub("[ \t\r\n]+", " ", tag.get_text().replace("\u200b", "")).strip()


def numbers(text: str) -> list[float]:
    """Every number of *text*; thin spaces stand between thousands."""
    joined = re.sub(r"(?<=\d)[\u202f\xa0](?=\d)", "", text)
    return [float(each.replace("−", "-")) for each in NUMBER.findall(joined)]


def whole(tag: Tag | None) -> int:
    """The one whole number that *tag* begins with."""
    assert tag is not None
    return int(numbers(tag.get_text())[0])


def is_shown(tag: Tag | None, count: float, n: float, *, weighed: bool = False) -> None:
    """The rate in *tag* is *count* of *n*, to the digits that are shown, with Wilson's interval."""
    assert tag is not None
    drawn = tag.find("title")
    if not n:
        assert not numbers(tag.get_text())
        return
    value = count / n
    shown = numbers(drawn.get_text() if drawn else tag.get_text())
    assert shown[0] == pytest.approx(value * 100, abs=0.0501 if value >= 0.01 else 0.00501)
    if weighed:
        return
    interval = binomtest(round(count), round(n)).proportion_ci(method="wilson")
    if drawn:
        assert shown.pop(1) == 95  # how sure the interval is
    low, high = shown[1:3]
    assert (low, high) == pytest.approx((interval.low * 100, interval.high * 100), abs=0.0501)


def query_of(link: Tag | None) -> str:
    """The query that a link leads to."""
    assert link is not None
    return parse_qs(urlsplit(str(link["href"])).query).get("q", [""])[0]


@dataclass(frozen=True)
class Table:
    """A table of a page: its headings, and its rows as cells by heading."""

    headings: tuple[str, ...]
    rows: tuple[dict[str, Tag], ...]


@dataclass(frozen=True)
class Shown:
    """The pages of one project, as its administrator sees them, over all time."""

    asked: Asked
    opener: urllib.request.OpenerDirector

    def page(self, path: str, **parameters: str) -> BeautifulSoup:
        """A page, parsed."""
        given = {"project": self.asked.project, "q": "", "window": "all", **parameters}
        address = f"{self.asked.address}{path}?{urlencode(given)}"
        with self.opener.open(address, timeout=60) as answer:
            return BeautifulSoup(answer.read().decode(), "html.parser")

    @property
    def weighed(self) -> bool:
        """Whether a row stands for several calls."""
        return any(each > 1 for each in self.asked.weights.values())


def tiles(soup: BeautifulSoup) -> dict[str, Tag]:
    """The figures at the top of a page, by their names."""
    return {text_of(each.dt): each for each in soup.select(".tile")}


def table(soup: BeautifulSoup, section: str) -> Table:
    """The table of the section whose heading has the id *section*; without rows where none is."""
    found = soup.select_one(f"[aria-labelledby={section}] table")
    if found is None:
        return Table((), ())
    headings = tuple(text_of(each) for each in found.select("thead th"))
    rows = tuple(
        dict(zip(headings, row.find_all(["th", "td"], recursive=False), strict=True))
        for row in found.select("tbody tr")
    )
    return Table(headings, rows)


def ids(soup: BeautifulSoup, where: str, kind: str) -> list[str]:
    """The ids of the failures or chains that the rows of a list lead to."""
    links: list[Any] = soup.select(f"{where} tbody a.row-link[href^='/{kind}/']")
    return [urlsplit(str(each["href"])).path.rpartition("/")[2] for each in links]
