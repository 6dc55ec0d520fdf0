"""What a reader can read of one project: every page, every file and every API answer, as data.

Pages are read as a person reads them: numbers by the heading they stand under, tables by heading,
columns and rows. Markup, wording and charts (each is followed by its table) are not part of it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from bs4 import BeautifulSoup, Tag
from fastapi.testclient import TestClient

__all__ = ["everything", "shortened"]

PAGES: Final = (
    "/",
    "/failures",
    "/round-trips",
    "/codes",
    "/tools",
    "/messages",
    "/fix-next",
    "/changes",
    "/experiments",
    "/rejected",
)
API: Final = (
    "summary",
    "overview",
    "failures-over-time",
    "round-trips",
    "round-trips/tool",
    "round-trips/code",
    "round-trips/model",
    "frequencies/tool",
    "frequencies/code",
    "frequencies/field",
    "frequencies/model",
    "matrices/code",
    "matrices/field",
    "costs/tool",
    "costs/code",
    "facets",
    "messages",
    "silent-successes",
    "fix-next",
    "failures",
    "chains",
    "changes",
    "experiments",
)
FILES: Final = ("failures", "issues", "chains")

# Of one table, file or list; what is beyond is in the digests of its columns.
MOST_ROWS: Final = 12
MOST_LINES: Final = 3
# Texts of transcripts stay out of the repository: a longer one is known by its digest.
LONGEST_TEXT: Final = 48
# Of one kind of detail page.
MOST_DETAILS: Final = 2

# Made by the storage or drawn by chance when data is filled in, so they say nothing.
_IDS: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_STORED_IDS: Final = frozenset({"chain_id", "id", "event_id", "cursor", "next", "next_cursor"})
_NUMBER: Final = re.compile(r"[-+−]?\d[\d.,\u202f\u00a0]*(?:\s?%|\s?pp)?")
_HEADINGS: Final = ("h1", "h2", "h3", "caption")
_SILENT: Final = ("svg", "form", "nav", "script", "button", "pre", "template")
_CHART: Final = re.compile(r"<svg\b.*?</svg>", re.DOTALL)


def everything(client: TestClient, project: str, *, compared: Sequence[str] = ()) -> dict[str, Any]:
    """Return every answer about *project* by address, ready for JSON.

    Args:
        client: Signed in as an administrator.
        project: Name of the project.
        compared: Both cohorts of comparisons, as they stand in addresses.
    """
    answers: dict[str, Any] = {}
    for page in (*PAGES, *(f"/compare?{cohorts}" for cohorts in compared)):
        soup = _page(client, _address(page, project))
        files, details = _files_of(soup), _details_of(soup, page)
        answers[f"page {page}"] = _read(soup)
        for path in files:
            answers[f"file {path}"] = _file(client, _address(path, project))
        for number, path in enumerate(details, 1):
            detail = _page(client, _address(path, project))
            answers[f"page {page} detail {number}"] = _read(detail)
    for name in FILES:
        path = f"/api/v1/exports/{name}.csv"
        answers[f"file {path}"] = _file(client, _address(path, project))
    for name in (*API, *(f"compare?{cohorts}" for cohorts in compared)):
        answer = client.get(_address(f"/api/v1/{name}", project))
        assert answer.status_code == 200, f"{name}: {answer.text[:500]}"
        answers[f"api {name}"] = _plain(answer.json())
    return answers


def _address(path: str, project: str) -> str:
    """Return *path* with its own query, but of *project* and over all time."""
    split = urlsplit(path)
    own = dict(parse_qsl(split.query))
    return f"{split.path}?{urlencode(own | {'project': project, 'window': 'all'})}"


def _page(client: TestClient, address: str) -> BeautifulSoup:
    answer = client.get(address)
    assert answer.status_code == 200, f"{address}: {answer.status_code}"
    main = answer.text[answer.text.index("<main") : answer.text.rindex("</main>")]
    return BeautifulSoup(_CHART.sub("", main), "html.parser")


def _files_of(soup: BeautifulSoup) -> list[str]:
    """The CSV files that a page offers."""
    found = {str(link["href"]) for link in soup.select("main a[download]")}
    return sorted(path for path in found if urlsplit(path).path.endswith(".csv"))


def _details_of(soup: BeautifulSoup, page: str) -> list[str]:
    """The first pages that the rows of a page's tables lead to, where they show one thing."""
    found = []
    for link in soup.select("main table a[href]"):
        path = urljoin(page, str(link["href"]))
        if re.match(r"/(failures|chains|tool|changes|experiment)(/|\?.*\bname=)", path):
            found.append(path)
    return list(dict.fromkeys(found))[:MOST_DETAILS]


def _read(soup: BeautifulSoup) -> dict[str, Any]:
    """Return numbers and tables of a page by the heading they stand under."""
    main = soup.find("main")
    assert isinstance(main, Tag)
    for silent in main.find_all([*_SILENT, "wbr"]):
        silent.decompose()
    main.smooth()
    tables: dict[str, Any] = {}
    for table in main.find_all("table"):
        name = _heading_of(table)
        while name in tables:
            name += " (next)"
        tables[name] = _table(table)
    for table in main.find_all("table"):
        table.decompose()
    numbers: dict[str, list[str]] = {}
    for heading, text in _texts(main):
        found = [_tidy(number) for number in _NUMBER.findall(_masked(text))]
        if found:
            numbers.setdefault(heading, []).extend(found)
    return {"numbers": numbers, "tables": tables}


def _heading_of(table: Tag) -> str:
    caption = table.find("caption")
    heading = caption or table.find_previous(_HEADINGS)
    return _text(heading) if isinstance(heading, Tag) else ""


def _texts(main: Tag) -> Iterator[tuple[str, str]]:
    """Yield the texts of a page, each with the heading before it."""
    heading = ""
    for element in main.descendants:
        if isinstance(element, Tag):
            if element.name in _HEADINGS:
                heading = _text(element)
        elif str(element).strip():
            yield heading, str(element)


def _table(table: Tag) -> dict[str, Any]:
    lines = [[_text(cell) for cell in row.find_all(["th", "td"])] for row in table.find_all("tr")]
    return _rows(lines[0] if lines else [], lines[1:], most=MOST_ROWS)


def _file(client: TestClient, address: str) -> dict[str, Any]:
    answer = client.get(address)
    assert answer.status_code == 200, f"{address}: {answer.status_code}"
    lines = list(csv.reader(io.StringIO(answer.text.removeprefix("\ufeff"))))
    columns = lines[0]
    kept = [number for number, name in enumerate(columns) if name not in _STORED_IDS]
    return _rows(
        [columns[number] for number in kept],
        [[_rounded(line[number]) for number in kept] for line in lines[1:]],
        most=MOST_LINES,
    )


def _rounded(cell: str) -> str:
    """Return a decimal fraction without the digits that depend on the order of additions."""
    return f"{float(cell):.9g}" if re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", cell) else cell


def _rows(columns: list[str], lines: list[list[str]], *, most: int) -> dict[str, Any]:
    """Return the first rows as they are, and all of them as one digest for each column."""
    masked = [[_masked(cell) for cell in line] for line in lines]
    found: dict[str, Any] = {
        "columns": columns,
        "count": len(lines),
        "rows": [[shortened(cell) for cell in line] for line in masked[:most]],
    }
    if len(masked) > most:
        found["digests"] = {
            name: _digest("\n".join(line[number] for line in masked if number < len(line)))
            for number, name in enumerate(columns)
        }
    return found


def _plain(value: Any) -> Any:
    """Return a JSON answer without ids of the storage, with floats rounded and texts short."""
    if isinstance(value, dict):
        return {
            shortened(_masked(key)): _plain(each)
            for key, each in value.items()
            if key not in _STORED_IDS
        }
    if isinstance(value, list):
        short = [_plain(each) for each in value[:MOST_ROWS]]
        if len(value) > MOST_ROWS:
            whole = json.dumps([_plain(each) for each in value], sort_keys=True)
            short.append(f"{len(value)} in all, digest {_digest(whole)}")
        return short
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return shortened(_masked(value)) if isinstance(value, str) else value


def _text(element: Tag) -> str:
    return _tidy(element.get_text(" "))


def _tidy(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _masked(text: str) -> str:
    return _IDS.sub("<id>", text)


def shortened(text: str) -> str:
    """Return *text* as it is recorded: a longer one by its length and digest."""
    return text if len(text) <= LONGEST_TEXT else f"{len(text)} characters, {_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
