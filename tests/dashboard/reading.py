"""Pages as a reader finds things on them: by heading, by column, by label, by what a link says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from bs4 import BeautifulSoup, Tag

__all__ = ["Cell", "Form", "Link", "Page", "Row", "Table"]

_CONTROLS = ["input", "select", "textarea"]
_HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]


def _said(tag: Tag) -> str:
    """The text of *tag* on one line, without the places where a long name may break."""
    return re.sub("[ \t\r\n]+", " ", tag.get_text().replace("\u200b", "")).strip()


def _attribute(tag: Tag, name: str) -> str:
    value = tag.get(name, "")
    return value if isinstance(value, str) else " ".join(value or ())


def _title(heading: Tag) -> str:
    """The words of a heading without the smaller ones beside them."""
    said = [
        _said(child) if isinstance(child, Tag) else str(child)
        for child in heading.children
        if not (isinstance(child, Tag) and "sub" in _attribute(child, "class").split())
    ]
    return re.sub(r"\s+", " ", "".join(said)).strip()


@dataclass(frozen=True)
class Link:
    """What a link says and where it leads."""

    text: str
    href: str
    current: bool
    download: bool


def _links(tag: Tag) -> tuple[Link, ...]:
    return tuple(
        Link(
            _said(each),
            _attribute(each, "href"),
            bool(each.get("aria-current")),
            each.has_attr("download"),
        )
        for each in tag.find_all("a", href=True)
    )


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    tag: Tag

    @property
    def text(self) -> str:
        """What stands in it."""
        return _said(self.tag)

    @property
    def href(self) -> str:
        """Where its first link leads; empty where it has none."""
        return next((each.href for each in _links(self.tag)), "")

    @property
    def moment(self) -> str:
        """The time that it shows, as machines read it; empty where it shows none."""
        found = self.tag.find("time")
        return _attribute(found, "datetime") if isinstance(found, Tag) else ""

    @property
    def number(self) -> int:
        """The whole number it begins with."""
        found = re.match(r"\d+", re.sub(r"(?<=\d),(?=\d)", "", self.text))
        assert found is not None, self.text
        return int(found[0])


Row = Mapping[str, Cell]


@dataclass(frozen=True)
class Table:
    """The headings of a table and what explains them, and its rows as cells by heading."""

    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    sorted_by: str
    meanings: Mapping[str, str]

    def column(self, heading: str) -> list[str]:
        """The texts of one column."""
        return [row[heading].text for row in self.rows]

    def row(self, text: str) -> Row:
        """The row whose first cell begins with *text*."""
        first = self.headings[0]
        return next(row for row in self.rows if row[first].text.startswith(text))


def _table(tag: Tag) -> Table:
    heads = tag.select("thead th")
    headings = tuple(_said(each) for each in heads)
    rows = tuple(
        dict(zip(headings, map(Cell, row.find_all(["th", "td"], recursive=False)), strict=True))
        for row in tag.select("tbody tr")
    )
    sorts = [name for name, each in zip(headings, heads, strict=True) if each.get("aria-sort")]
    meanings = {
        name: _attribute(each, "title")
        for name, each in zip(headings, heads, strict=True)
        if each.get("title")
    }
    return Table(headings, rows, sorts[0] if sorts else "", meanings)


@dataclass(frozen=True)
class Form:
    """A form as it would be sent untouched: its address, its fields, what its buttons say."""

    action: str
    method: str
    fields: Mapping[str, str]
    buttons: tuple[str, ...]
    ticked: tuple[tuple[str, str], ...]
    pressed: tuple[str, ...]
    sends_to: Mapping[str, str]  # of buttons with an address of their own: by its path


def _value(tag: Tag) -> str:
    if tag.name == "select":
        options = tag.find_all("option")
        chosen = [each for each in options if each.has_attr("selected")] or options[:1]
        if not chosen:
            return ""
        own = chosen[0].has_attr("value")
        return _attribute(chosen[0], "value") if own else _said(chosen[0])
    return tag.get_text() if tag.name == "textarea" else _attribute(tag, "value")


def _form(tag: Tag) -> Form:
    fields: dict[str, str] = {}
    ticked: list[tuple[str, str]] = []
    for each in tag.find_all(["input", "select", "textarea"]):
        name = _attribute(each, "name")
        if _attribute(each, "type") in ("checkbox", "radio"):
            if each.has_attr("checked"):
                ticked.append((name, _attribute(each, "value")))
        elif name:
            fields[name] = _value(each)
    buttons = tag.find_all("button")
    pressed = [_attribute(each, "aria-pressed") for each in buttons]
    return Form(
        _attribute(tag, "action"), _attribute(tag, "method"), fields,
        tuple(map(_said, buttons)), tuple(ticked), tuple(filter(None, pressed)),
        {to.partition("?")[0]: to for each in buttons if (to := _attribute(each, "formaction"))},
    )  # fmt: skip


@lru_cache(maxsize=8)
def _parsed(html: str) -> Tag:
    """*html* as a tree, which nobody changes: the same page is often read by tests in turn."""
    soup = BeautifulSoup(html, "html.parser")
    for each in soup.find_all("br"):
        each.replace_with(" ")
    return soup


class Page:
    """A page, or a part of one. It is parsed when something of it is asked for.

    Args:
        html: What the server sent, or the part.
    """

    def __init__(self, html: str | Tag) -> None:
        self._html = html

    @cached_property
    def tag(self) -> Tag:
        """The page as a tree."""
        return _parsed(self._html) if isinstance(self._html, str) else self._html

    @property
    def title(self) -> str:
        """The title of the window."""
        assert self.tag.title is not None
        return _said(self.tag.title)

    @property
    def headings(self) -> list[str]:
        """Every heading, in order."""
        return [_title(each) for each in self.tag.find_all(_HEADINGS)]

    @property
    def heading(self) -> str:
        """The one heading of the whole page."""
        (found,) = self.tag.find_all("h1")
        return _title(found)

    @property
    def text(self) -> str:
        """Everything that can be read."""
        return _said(self.tag)

    @cached_property
    def main(self) -> Page:
        """The page without what surrounds every page."""
        assert self.tag.main is not None
        return Page(self.tag.main)

    @property
    def lead(self) -> str:
        """The sentence below the heading; empty where there is none."""
        (heading,) = self.tag.find_all("h1")
        below = heading.find_next_sibling("p")
        return _said(below) if isinstance(below, Tag) else ""

    def has(self, heading: str) -> bool:
        """Whether there is a section of this heading."""
        return any(_title(each) == heading for each in self._below())

    def section(self, heading: str) -> Page:
        """What stands under *heading* (its main words)."""
        for each in self._below():
            if _title(each) == heading:
                around = each.find_parent(["section", "li"]) or each.parent
                assert around is not None
                return Page(around)
        raise AssertionError(f"no {heading!r} among {self.headings}")

    @property
    def snippets(self) -> list[str]:
        """Every preformatted text, which is there to be copied or read as it is."""
        return [each.get_text() for each in self.tag.find_all("pre")]

    @property
    def copied(self) -> list[str]:
        """What the buttons that copy would copy, in order."""
        buttons = self.tag.select("button[data-copy]")
        found = [self.tag.find(id=_attribute(each, "data-copy")) for each in buttons]
        return [each.get_text() for each in found if each is not None]

    @property
    def items(self) -> list[Page]:
        """The entries of the lists."""
        return [Page(each) for each in self.tag.find_all("li")]

    def listed(self, heading: str) -> Page:
        """The list that follows *heading*."""
        for each in self._below():
            if _title(each) == heading:
                found = each.find_next(["ul", "ol"])
                assert isinstance(found, Tag)
                return Page(found)
        raise AssertionError(f"no {heading!r} among {self.headings}")

    def _below(self) -> list[Tag]:
        return self.tag.find_all(["h2", "h3", "h4"])

    @property
    def sections(self) -> Iterator[Page]:
        """The cards of the page that have a heading, in order."""
        for each in self.tag.find_all("h2"):
            around = each.find_parent(["section", "li"])
            if around is not None:
                yield Page(around)

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """Every table."""
        return tuple(map(_table, self.tag.find_all("table")))

    def table(self, *headings: str) -> Table:
        """The first table that has all these columns."""
        for each in self.tables:
            if set(headings) <= set(each.headings):
                return each
        raise AssertionError(f"no table of {headings} among {[t.headings for t in self.tables]}")

    @property
    def figures(self) -> dict[str, str]:
        """Terms and what stands beside each."""
        found = {}
        for term in self.tag.find_all("dt"):
            beside = term.find_next_sibling("dd")
            found[_said(term)] = _said(beside) if isinstance(beside, Tag) else ""
        return found

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Every link."""
        return _links(self.tag)

    def link(self, text: str) -> str:
        """Where the link that begins with *text* leads."""
        found = next((each.href for each in self.links if each.text.startswith(text)), None)
        assert found is not None, f"no link {text!r}"
        return found

    @property
    def files(self) -> list[str]:
        """Addresses of the files that are offered."""
        return [each.href for each in self.links if each.download]

    @property
    def badges(self) -> list[tuple[str, str]]:
        """The terms that stand as badges, each with what explains it; not names from the data."""
        return [
            (_said(each), _attribute(each, "title"))
            for each in self.tag.select(".badge:not([role]):not(:has(.code))")
        ]

    @property
    def menus(self) -> dict[str, list[Link]]:
        """What opens: the words on it, and the links inside."""
        found = {}
        for each in self.tag.find_all("details"):
            summary = each.find("summary")
            assert isinstance(summary, Tag)
            found[_said(summary)] = list(_links(each))
        return found

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """Every form."""
        return tuple(map(_form, self.tag.find_all("form")))

    def form(self, action: str, method: str = "post") -> Form:
        """The first form that is sent to the path *action*."""
        found = self.forms_to(action, method)
        assert found, f"no form to {action}"
        return found[0]

    def forms_to(self, action: str, method: str = "post") -> list[Form]:
        """The forms that are sent to the path *action*."""
        return [
            each
            for each in self.forms
            if each.action.split("?")[0] == action and each.method == method
        ]

    def field(self, label: str) -> str:
        """The value of the field that is labelled *label*."""
        for each in self.tag.find_all("label"):
            if _said(each).startswith(label):
                inside = each.find(_CONTROLS)
                found = inside or self.tag.find(id=_attribute(each, "for"))
                assert isinstance(found, Tag), label
                return _value(found)
        raise AssertionError(f"no field {label!r}")

    def role(self, name: str) -> str:
        """What the first element of this role (alert, status) says; empty where there is none."""
        found = self.tag.find(True, attrs={"role": name})
        return _said(found) if found is not None else ""

    @property
    def current(self) -> list[str]:
        """The entries of the navigation that are marked as this page."""
        return [
            each.text for nav in self.tag.find_all("nav") for each in _links(nav) if each.current
        ]

    def tabs(self, name: str) -> tuple[Link, ...]:
        """The links of the navigation called *name*."""
        found = self.tag.find(True, attrs={"aria-label": name})
        assert found is not None, f"no {name!r}"
        return _links(found)

    def labelled(self, text: str) -> list[str]:
        """Names of the drawings and controls whose name begins with *text*."""
        names = [_attribute(each, "aria-label") for each in self.tag.find_all(True)]
        return [name for name in names if name.startswith(text)]

    def count(self, name: str) -> int:
        """How many elements of this name there are."""
        return len(self.tag.find_all(name))
