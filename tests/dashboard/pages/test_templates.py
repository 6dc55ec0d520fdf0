"""Templates and contexts are held together: no field without a reader, no name without a field."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module, resources
from pkgutil import walk_packages
from typing import Any, get_args

from jinja2 import nodes
from jinja2.meta import find_undeclared_variables

from toolfault_collector.admin.keys import KeyKind
from toolfault_collector.importers.classify.rules import RULES
from toolfault_dashboard import pages
from toolfault_dashboard.analysis.comparisons.effect import Verdict
from toolfault_dashboard.glossary import (
    AUDIENCES,
    CATEGORIES,
    CODES,
    KIND_STATES,
    OUTCOMES,
    REMEDIES,
    meaning,
)
from toolfault_dashboard.pages.shared.frame import Context, Shell
from toolfault_dashboard.pages.shared.table import Table
from toolfault_dashboard.render import PACKAGE, environment

MODULES = [
    import_module(each.name)
    for each in walk_packages(pages.__path__, f"{pages.__name__}.")
    if not each.ispkg
]
TEMPLATES: dict[str, type[Any]] = {
    each.template: each
    for module in MODULES
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, Context) and each is not Context
}
FOLDER = resources.files(PACKAGE).joinpath("templates")
NAMES = sorted(each.name for each in FOLDER.iterdir() if each.name.endswith(".html"))


def _source(name: str) -> str:
    return FOLDER.joinpath(name).read_text(encoding="utf-8")


def _tree(name: str) -> nodes.Template:
    return environment().parse(_source(name))


def _reads(tree: nodes.Template, root: str) -> set[str]:
    """Names x that are read as ``root.x``."""
    return {
        node.attr
        for node in tree.find_all(nodes.Getattr)
        if isinstance(node.node, nodes.Name) and node.node.name == root
    }


def _documented() -> Iterator[type[Any]]:
    """Contexts and what they consist of: dataclasses of pages whose fields are all documented."""
    for module in MODULES:
        yield from (
            each
            for each in vars(module).values()
            if isinstance(each, type)
            and is_dataclass(each)
            and each.__module__ == module.__name__
            and all(field.type.startswith("Doc[") for field in fields(each))
        )


def test_every_template_compiles():
    """The strict environment compiles each template."""
    assert all(environment().get_template(name) for name in NAMES)


def test_every_line_of_a_template_can_be_read():
    """No line is wider than an editor shows."""
    lines = [(name, line) for name in NAMES for line in _source(name).splitlines()]
    assert [each for each in lines if len(each[1]) > 120] == []


def test_every_page_template_has_a_context_and_the_other_way_round():
    """Contexts name exactly the templates that are pages, each its own."""
    pages = {name for name in NAMES if not name.startswith("_") and name != "base.html"}
    assert pages == set(TEMPLATES)


def test_a_template_reads_exactly_the_fields_of_its_context():
    """Every ``page.x`` is a field, and every field is read: what nobody shows, nobody computes."""
    for name, context in TEMPLATES.items():
        assert _reads(_tree(name), "page") == {field.name for field in fields(context)}, name


def test_a_template_knows_no_other_name_than_shell_and_page():
    """Nothing but the documented context reaches a template."""
    known = {"shell", "page", "static", "clock", "c", "e", "icon", "logo", "table"}
    for name in (*TEMPLATES, "base.html"):
        assert find_undeclared_variables(_tree(name)) <= known, name


def test_the_frame_reads_only_fields_of_its_context():
    """Every ``shell.x`` is a field of ``Shell``."""
    declared = {field.name for field in fields(Shell)}
    read = set().union(*(_reads(_tree(name), "shell") for name in (*TEMPLATES, "base.html")))
    assert read == declared


# What a badge without a fixed text shows, and all that it may be.
SHOWN = {
    "name": (*CATEGORIES, *AUDIENCES, *OUTCOMES, *get_args(Verdict), *KIND_STATES),
    "kind": get_args(KeyKind),
    "state": ("active", "invited", "disabled", "firing", "pending", "quiet", "snoozed"),
    "remedy": (*REMEDIES, "default", "describe", "all_at_once", "reword", "expose"),
}


def _terms() -> Iterator[str]:
    """What the badges of all templates are explained by."""
    for name in NAMES:
        for call in _tree(name).find_all(nodes.Call):
            if "badge" not in (getattr(call.node, "name", ""), getattr(call.node, "attr", "")):
                continue
            term = next((each.value for each in call.kwargs if each.key == "term"), call.args[0])
            if isinstance(term, nodes.Const):
                yield term.value
            else:
                yield from SHOWN[getattr(term, "name", "") or getattr(term, "attr", "")]


def test_every_badge_has_an_entry_in_the_glossary():
    """No badge is without an explanation, whatever it may show."""
    assert {term for term in _terms() if not meaning(term)} == set()


def test_every_code_of_a_rule_has_an_entry_in_the_glossary():
    """What the server calls a failure of a transcript or a span is explained like any code."""
    assert {rule.code for rule in RULES} <= CODES.keys()


def test_no_template_switches_escaping_off_or_holds_script_or_style():
    """No ``|safe``, inline script, inline style, event attribute or javascript address."""
    for name in NAMES:
        source = _source(name)
        assert "|safe" not in source.replace(" ", ""), name
        assert "autoescape" not in source, name
        assert not re.search(r"<script(?![^>]*\bsrc=)", source), name
        assert not re.search(r"<style\b|\sstyle=", source), name
        assert not re.search(r"\son[a-z]+=", source), name
        assert "javascript:" not in source.lower(), name


def test_static_files_are_plain_and_small():
    """What a first visit loads beside a page is 20 KB at most, and is not built."""
    static = resources.files(PACKAGE).joinpath("static")
    sizes = {
        each.name: len(gzip.compress(each.read_bytes()))
        for each in static.iterdir()
        if each.is_file()
    }
    assert set(sizes) == {"app.css", "app.js", "query.js", "icon.svg"}
    assert sum(sizes.values()) <= 20_000


def test_every_field_of_every_context_is_documented():
    """What a template may use says what it is."""
    assert set(TEMPLATES.values()) <= set(_documented())


def _read_by_tables() -> Iterator[str]:
    """What the columns of all tables read of their lines, each as ``.name``."""
    tables = [
        each for module in MODULES for each in vars(module).values() if isinstance(each, Table)
    ]
    for column in (column for table in tables for column in table.columns):
        paths = (column.href, column.drawn, column.value or column.name)
        yield from (f".{path}" for path in paths if isinstance(path, str))
        names = getattr(getattr(column.value, "__code__", None), "co_names", ())
        yield from (f".{name}" for name in names)


def test_every_field_of_every_context_is_read():
    """No context carries what no template and no column of a table shows."""
    source = "".join([*map(_source, NAMES), *_read_by_tables()])
    unread = [
        f"{kind.__name__}.{each.name}"
        for kind in _documented()
        for each in fields(kind)
        if not re.search(rf"\.{each.name}\b", source)
    ]
    assert unread == []
