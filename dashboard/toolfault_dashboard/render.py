"""Templates: one environment, strict, escaping everything, with the filters of ``formats``.

Two walls keep stored text inert: autoescape writes markup as text, and ``finalize`` makes hidden
and reordering characters visible in every value of every template, whoever forgets them.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import lru_cache
from importlib import resources
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from toolfault_dashboard import formats
from toolfault_dashboard.exports.parquet import is_parquet_there
from toolfault_dashboard.glossary import meaning

__all__ = ["PACKAGE", "environment", "pretty_json", "query_string", "static_url"]

PACKAGE: Final = "toolfault_dashboard"


_BREAKS: Final = re.compile(r"(?<=[_/.-])(?=\w)(?<!\d[/.-](?=\d))|(?<=[a-z])(?=[A-Z])")


@lru_cache(maxsize=64)
def static_url(name: str) -> str:
    """Return the address of a static file; its content's hash makes it cacheable for ever."""
    content = resources.files(PACKAGE).joinpath("static", name).read_bytes()
    return f"/static/{name}?v={hashlib.sha256(content).hexdigest()[:12]}"


def query_string(parameters: dict[str, str]) -> str:
    """Return ``?a=b&c=d`` without empty values, or nothing."""
    kept = {name: value for name, value in parameters.items() if value}
    return f"?{urlencode(kept)}" if kept else ""


def pretty_json(value: Any) -> str:
    """Return *value* as indented JSON; what JSON cannot hold becomes its text."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True, default=str)


def breakable(text: str) -> Markup:
    """Return *text* with places to break a line: after ``_``, ``.``, ``/``, ``-``, in camelCase.

    A number has none within it: 1.5 and 331/11 stay whole.
    """
    safe = str(escape(formats.visible(text)))
    return Markup(_BREAKS.sub("<wbr>", safe))  # noqa: S704 - escaped above


def ticked(text: str) -> Markup:
    """Return *text* with what stands between back ticks as code."""
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part
        for number, part in enumerate(formats.visible(text).split("`"))
    )


@lru_cache(maxsize=1024)
def explained(term: str) -> Markup:
    """Return the attribute that explains *term* by the glossary; nothing without an entry."""
    said = meaning(term)
    return Markup(' title="{}"').format(said) if said else Markup()


def _finalize(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return formats.visible(value)
    return value


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the one environment; templates are read from the installed package."""
    made = Environment(
        loader=PackageLoader(PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        count=formats.count,
        decimal=formats.decimal,
        percent=formats.percent,
        percent_interval=formats.percent_interval,
        points=formats.points,
        position=formats.position,
        plural=formats.plural,
        duration=formats.duration,
        timestamp=formats.timestamp,
        time=formats.time_tag,
        pretty_json=pretty_json,
        wbr=breakable,
        explained=explained,
        ticked=ticked,
    )
    made.globals.update(static=static_url, clock=formats.clock, has_parquet=is_parquet_there)
    return made
