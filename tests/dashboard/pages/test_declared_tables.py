"""A table is declared once: its headings, its chooser and its file are those of the declaration."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module, resources
from pkgutil import walk_packages

import pytest
from jinja2 import nodes
from pyarrow import parquet
from tests.cases import long_cases
from tests.dashboard.addresses import COMPARED
from tests.dashboard.pages.conftest import Browser
from tests.dashboard.pages.places import details, generated
from tests.dashboard.reading import Page

from toolfault_dashboard import pages
from toolfault_dashboard.pages.chains.round_trips import BY_GROUP, CHAINS
from toolfault_dashboard.pages.exports.tables import TABLES
from toolfault_dashboard.pages.failures.kinds_table import KINDS
from toolfault_dashboard.pages.figures.tools import TOOLS
from toolfault_dashboard.pages.fixes.messages import MESSAGES
from toolfault_dashboard.pages.shared.lines import BY_CODE, FAILURES
from toolfault_dashboard.pages.shared.table import Column, Table
from toolfault_dashboard.queries.rows import ToolRow
from toolfault_dashboard.render import PACKAGE, environment
from toolfault_dashboard.search import KEYS

MODULES = [
    import_module(each.name)
    for each in walk_packages(pages.__path__, f"{pages.__name__}.")
    if not each.ispkg
]
DECLARED = {
    id(each): each
    for module in MODULES
    for each in vars(module).values()
    if isinstance(each, Table) and any(column.title for column in each.columns)
}
CHOSEN = {
    "/tools": TOOLS,
    "/failures": FAILURES,
    "/failures?group=kind": KINDS,
    "/round-trips": BY_GROUP,
    "/round-trips?by=tool": CHAINS,
    "/codes": BY_CODE,
    "/messages": MESSAGES,
}
FILES = [each for each in TABLES if each.stream(()).columns]
STREAMED = [FAILURES, CHAINS]


def _headings(table: Table) -> tuple[str, ...]:
    """The headings of *table* as it is drawn with all of its columns."""
    source = (
        '{% from "_table.html" import table %}<main>{{ table(drawn, "Table", own=own) }}</main>'
    )
    drawn = table.drawn((), tuple(table.titles))
    own = {each.cell: each.cell for each in drawn.columns}  # no line, so none is called
    html = environment().from_string(source).render(drawn=drawn, own=own)
    return Page(html).tables[0].headings


def _plain(heading: str) -> str:
    """A heading without what stands behind and under it."""
    return heading.removesuffix(" (UTC)").removesuffix(", UTC")


def _file(browser: Browser, path: str) -> list[str]:
    answer = browser.get(generated(path))
    assert answer.status_code == 200, path
    return next(csv.reader(io.StringIO(answer.text)))


def test_the_headings_are_those_of_the_declaration():
    """Every column with a heading is drawn, in the order of the declaration."""
    assert len(DECLARED) > 40
    for table in DECLARED.values():
        columns = [each for each in table.columns if each.title]
        expected = [f"{each.title} {each.note}".strip() for each in columns]
        assert [_plain(each) for each in _headings(table)] == expected


def test_a_template_draws_no_table_but_those_whose_columns_are_data():
    """Heat maps, and the codes of a chart over time, have a column for each value; others none."""
    folder = resources.files(PACKAGE).joinpath("templates")
    sources = {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir()}
    by_hand = {name for name, source in sources.items() if "<table" in source}
    assert by_hand == {"_table.html", "_components.html", "breakdown.html", "codes.html"}


def _own_cells() -> list[tuple[str, dict[str, bool]]]:
    """Of each drawing of a table: its template, and the cells that it brings along.

    True stands for a macro of the template; that of an imported template is looked up there.
    """
    found: list[tuple[str, dict[str, bool]]] = []
    folder = resources.files(PACKAGE).joinpath("templates")
    for file in folder.iterdir():
        if not file.name.endswith(".html"):
            continue
        tree = environment().parse(file.read_text(encoding="utf-8"))
        macros = {each.name for each in tree.find_all(nodes.Macro)}
        imported = {
            each.target: environment().get_template(each.template.value).module
            for each in tree.find_all(nodes.Import)
            if isinstance(each.template, nodes.Const)
        }
        for call in tree.find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name == "table":
                pairs = [pair for each in call.args for pair in each.find_all(nodes.Pair)]
                own = {
                    pair.key.as_const(): _is_macro(pair.value, macros, imported) for pair in pairs
                }
                found.append((file.name, own))
    return found


def _is_macro(node: nodes.Expr, macros: set[str], imported: Mapping[str, object]) -> bool:
    if isinstance(node, nodes.CondExpr):
        return all(_is_macro(each, macros, imported) for each in (node.expr1, node.expr2) if each)
    if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name):
        return hasattr(imported[node.node.name], node.attr)
    return isinstance(node, nodes.Name) and node.name in macros


def test_every_cell_is_a_macro():
    """A cell that is misspelt is found here, also in a column that few choose, or that is empty."""
    shared = vars(environment().get_template("_cells.html").module)
    drawings = _own_cells()
    for table in DECLARED.values():
        own = {each.cell for each in table.columns if each.title} - set(shared)
        assert any(own <= set(each) for _, each in drawings), (table.columns[0], own)


def test_a_drawing_brings_the_macros_that_its_table_needs():
    """What a template names is there, and some table has a cell of that name."""
    cells = {each.cell for table in DECLARED.values() for each in table.columns}
    for template, own in _own_cells():
        assert [name for name, found in own.items() if not found] == [], template
        assert set(own) <= cells, template


@pytest.mark.parametrize("path", CHOSEN)
def test_the_chooser_offers_the_columns_that_can_be_chosen(browser: Browser, path: str):
    """A page offers the columns of the declaration, and shows those that are asked for."""
    table = CHOSEN[path]
    asked = f"{'&' if '?' in path else '?'}{table.parameter}={','.join(table.titles)}"
    page = browser.page(generated(path + asked)).main
    forms = [each for each in page.forms if each.fields.get("columns") == table.parameter]
    assert [value for _, value in forms[0].ticked] == list(table.titles)
    shown = {_plain(heading) for each in page.tables for heading in each.headings}
    dynamic = {"By time", "Over time"}  # by hour, day or week
    assert {each.title for each in table.columns if each.title} - dynamic <= shown


def _address(browser: Browser, name: str, extension: str) -> str:
    """Where a file of the generated project is, with what its page would be asked for."""
    (change,) = [each for each in details(browser.engine) if each.startswith("/changes/")]
    given = {
        "effect": f"?change={change.rpartition('/')[2]}",
        "new-since": f"?change={change.rpartition('/')[2]}",
        "comparison": COMPARED.removeprefix("/compare"),
        "comparison-codes": COMPARED.removeprefix("/compare"),
        "experiment": "?name=b",
        "experiment-costs": "?name=b",
        "experiment-days": "?name=b&days=1",
    }.get(name, "")
    return f"/{name}.{extension}{given}"


@pytest.mark.parametrize("name", [each.name for each in FILES])
def test_the_header_of_a_file_is_that_of_the_declaration(browser: Browser, name: str):
    """A file has the fields of its rows, and what its columns write beside them."""
    (table,) = [each for each in FILES if each.name == name]
    assert _file(browser, _address(browser, name, "csv")) == list(table.stream(()).columns)


_TAKEN = ("breakdown", "chains", "tools")
_OF_KIND: dict[str, tuple[type, ...]] = {
    "int64": (int,),
    "double": (int, float),
    "bool": (bool,),
    "timestamp[us, tz=UTC]": (str,),
    "string": (str, list, dict),
}


@pytest.mark.parametrize(
    "name", [*_TAKEN, *long_cases(*(each.name for each in TABLES if each.name not in _TAKEN))]
)
def test_no_number_and_no_truth_is_written_as_text(browser: Browser, name: str):
    """The type that Parquet has for a column is that of its values in NDJSON."""
    schema = parquet.read_schema(
        io.BytesIO(browser.get(generated(_address(browser, name, "parquet"))).content)
    )
    lines = browser.get(generated(_address(browser, name, "ndjson"))).text.splitlines()
    for line in lines[:200]:
        for column, value in json.loads(line).items():
            kind = str(schema.field(column).type)
            assert value is None or isinstance(value, _OF_KIND[kind]), (column, value)
            assert not isinstance(value, bool) or kind == "bool", column
            assert column.endswith("_at") == kind.startswith("timestamp"), column


@pytest.mark.parametrize("table", STREAMED, ids=lambda table: table.name)
def test_a_file_that_is_streamed_has_what_the_page_shows(browser: Browser, table: Table):
    """Each field of a row that a column shows is in the file."""
    header = _file(browser, f"/{table.name}.csv")
    paths = [each.value for each in table.columns if isinstance(each.value, str)]
    assert {path.removeprefix("row.") for path in paths if path.startswith("row.")} <= set(header)


def test_what_can_be_added_to_the_list_of_failures_is_in_its_file(browser: Browser):
    """The keys that the table of keys makes columns are columns of the file, too."""
    header = _file(browser, "/failures.csv")
    names = [each.name for each in KEYS.values() if each.is_column]
    assert [each for each in names if not {each, f"{each}_ms"} & set(header)] == []


def test_one_line_adds_a_column(browser: Browser, monkeypatch: pytest.MonkeyPatch):
    """A column that is declared is on the page, in the chooser and in the file."""
    lost = Column("lost", "Lost calls", "count", _lost, usual=False, file={"lost_calls": "integer"})
    monkeypatch.setattr(TOOLS, "columns", (*TOOLS.columns, lost))

    usual = browser.page(generated("/tools")).main
    assert "Lost calls" not in usual.table("Tool").headings
    page = browser.page(generated("/tools?cols=calls,lost")).main
    (form,) = [each for each in page.forms if each.fields.get("columns") == "cols"]
    assert [value for _, value in form.ticked] == ["calls", "lost"]
    shown = page.table("Tool").column("Lost calls")
    rows = list(csv.DictReader(io.StringIO(browser.get(page.files[0]).text)))
    assert list(rows[0])[-1] == "lost_calls"
    written = {row["tool"]: row["lost_calls"] for row in rows}
    assert {int(each.replace(",", "")) for each in shown} == {int(n) for n in written.values()}
    assert any(int(each) for each in written.values())


def _lost(row: ToolRow) -> int:
    return row.failures + row.calls_spent


def test_a_field_of_the_row_is_in_the_file_by_itself():
    """A metric is a field of the row and a line of the table: the file needs no third."""
    assert {each.name for each in fields(ToolRow)} <= set(TOOLS.stream(()).columns)
