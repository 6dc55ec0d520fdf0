"""Configuration: arguments over ``TOOLFAULT_*`` variables over defaults."""

from __future__ import annotations

import os

from toolfault.telemetry._dsn import DsnError, parse_dsn
from toolfault.telemetry._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

__all__ = ["KNOBS", "Config", "Knob", "configuration_table", "resolve"]


class Config(Record):
    """What a host can set; frozen once the client runs.

    Every field is described in ``KNOBS``, from which ``docs/configuration-sdk.md`` is made.
    """

    dsn: str | None = None
    agent: str | None = None
    environment: str | None = None
    release: str | None = None
    successes: str = "folded"
    sample_rate: float = 1.0
    failure_sample_rate: float = 1.0
    ignore: tuple[Any, ...] = ()
    before_send: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any] | None] | None = None
    capture_values: bool = False
    redact_keys: tuple[str, ...] = ()
    keep_keys: tuple[str, ...] = ()
    coerce: bool | None = None
    hints: str | None = None
    spool_dir: str | None = None
    integrations: tuple[str, ...] = ("auto",)


class Knob(Record):
    """One setting.

    Attributes:
        name: Argument of ``init``; the variable is ``TOOLFAULT_`` and the name in capitals.
        read: Turns the text of the variable, or the argument, into the value.
        form: What a value looks like, for the table and for messages.
        does: What it sets.
        reason: Why the default is what it is.
    """

    name: str
    read: Callable[[Any], Any]
    form: str
    does: str
    reason: str

    @property
    def variable(self) -> str | None:
        """Name of the environment variable; None where the value cannot be text."""
        return None if self.name == "before_send" else f"TOOLFAULT_{self.name.upper()}"


def _label(value: Any) -> str:
    text = str(value).strip()
    if not text or len(text) > 128:
        raise ValueError
    return text


def _text(value: Any) -> str:
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or not text.strip():
        raise ValueError
    return text.strip()


def _dsn(value: Any) -> str:
    text = _text(value)
    parse_dsn(text)
    return text


def _rate(value: Any) -> float:
    rate = float(value)
    if not 0.0 <= rate <= 1.0:
        raise ValueError
    return rate


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError


def _words(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else list(value)
    if not all(isinstance(part, str) for part in parts):
        raise ValueError
    return tuple(part.strip() for part in parts if part.strip())


def _integrations(value: Any) -> tuple[str, ...]:
    if value is False or (isinstance(value, str) and value.strip().lower() in ("false", "off")):
        return ()
    return ("auto",) if value is True else _words(value)


def _ignored(value: Any) -> tuple[Any, ...]:
    parts = value.split(",") if isinstance(value, str) else list(value)
    kinds = [
        isinstance(p, str) or (isinstance(p, type) and issubclass(p, BaseException)) for p in parts
    ]
    if not all(kinds):
        raise ValueError
    return tuple(part.strip() if isinstance(part, str) else part for part in parts)


def _callable(value: Any) -> Any:
    if not callable(value):
        raise ValueError  # noqa: TRY004 - every bad setting is one kind of mistake
    return value


def _one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError
        return str(value)

    return read


KNOBS: tuple[Knob, ...] = (
    Knob(
        "dsn",
        _dsn,
        "`http://KEY@host:port/prefix`",
        "Where events go and the ingest key they go with.",
        "None: the error contract works without a collector, so nothing is sent unless asked.",
    ),
    Knob(
        "agent",
        _label,
        "text, at most 128 characters",
        "Name of the agent; falls back to `OTEL_SERVICE_NAME`.",
        "None: a made-up name would mix agents in every list.",
    ),
    Knob(
        "environment",
        _label,
        "text, at most 128 characters",
        "Deployment environment, such as `prod`.",
        "None: guessing `prod` on a laptop would spoil the production numbers.",
    ),
    Knob(
        "release",
        _label,
        "text, at most 128 characters",
        "Version of the agent.",
        "Found in CI variables, then in the git checkout: comparing releases is the point, and "
        "people forget to set it.",
    ),
    Knob(
        "successes",
        _one_of("folded", "all"),
        "`folded` or `all`",
        "Whether successful calls are folded into counters per minute or sent one by one.",
        "`folded`: the totals are exact and cost almost nothing; failures are always whole.",
    ),
    Knob(
        "sample_rate",
        _rate,
        "number from 0 to 1",
        "Share of conversations whose successes are sent, where successes are sent one by one.",
        "1: exact numbers. Whole conversations are kept or left out, so chains stay whole.",
    ),
    Knob(
        "failure_sample_rate",
        _rate,
        "number from 0 to 1",
        "Share of conversations whose failures are sent.",
        "1: failures are what the product is for; lower it only in a storm you cannot fix.",
    ),
    Knob(
        "ignore",
        _ignored,
        "exception classes, error codes or tool names",
        "Failures that are not reported; each is counted as dropped.",
        "Empty: nothing disappears unless named.",
    ),
    Knob(
        "before_send",
        _callable,
        "callable `(event, hint) -> event or None`",
        "Last look at an event that is sent whole; None leaves it out.",
        "None. If it raises, the event is dropped and counted: it may be a privacy filter.",
    ),
    Knob(
        "capture_values",
        _flag,
        "`true` or `false`",
        "Whether rejected values travel with failures, redacted and shortened; without it their "
        "type and size do, in every text (`what-leaves.md`).",
        "False: arguments are what your users said; fields, codes and near misses need no value.",
    ),
    Knob(
        "redact_keys",
        _words,
        "comma-separated words or a list",
        "Further names of arguments whose values are secret.",
        "Empty: the built-in list covers the usual names.",
    ),
    Knob(
        "keep_keys",
        _words,
        "comma-separated words or a list",
        "Names of arguments that are not secret although they look so.",
        "Empty: a wrong guess on this side leaks.",
    ),
    Knob(
        "coerce",
        _flag,
        "`true` or `false`",
        "Whether tools repair booleans, numbers and JSON given as text before validation.",
        "False: a repair changes what a tool receives; it is opted into.",
    ),
    Knob(
        "hints",
        _one_of("derived"),
        "`derived`",
        "Whether messages for the model carry hints derived from the declaration.",
        "Off: texts stay exactly as the contract writes them.",
    ),
    Knob(
        "spool_dir",
        _text,
        "directory",
        "Where events wait on disk, so that they survive `kill -9` of the agent.",
        "None: writing to disk is the host's decision.",
    ),
    Knob(
        "integrations",
        _integrations,
        "`auto`, comma-separated names or a list, or `false`",
        "Agent frameworks whose tool calls are followed (`frameworks.md`).",
        "`auto`: with the decorator alone, most of what frameworks refuse is never seen.",
    ),
)


def resolve(
    arguments: Mapping[str, Any], variables: Mapping[str, str]
) -> tuple[Config, Sequence[str]]:
    """Return the configuration and what was wrong with it, in words that say what to do.

    A wrong setting never stops the host: it is reported and the next source down is used.

    Args:
        arguments: Settings given to ``init``; None stands for "not given".
        variables: Environment variables.
    """
    values: dict[str, Any] = {}
    complaints: list[str] = []
    for knob in KNOBS:
        sources = [(f"init({knob.name}=...)", arguments.get(knob.name))]
        if knob.variable is not None:
            sources.append((knob.variable, variables.get(knob.variable) or None))
        for source, given in sources:
            if given is None:
                continue
            try:
                values[knob.name] = knob.read(given)
                break
            except DsnError as error:
                complaints.append(f"{source} is ignored: {error}")
            except Exception:  # noqa: BLE001 - a host object may raise anything when read
                complaints.append(f"{source} is ignored: expected {knob.form}")
    return Config(**values), complaints


def configuration_table() -> str:
    """Return the settings as a Markdown table, for the documentation."""
    lines = [
        "| setting | variable | form | what it sets | default, and why |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{knob.name}` | {f'`{knob.variable}`' if knob.variable else 'none'} "
        f"| {knob.form} | {knob.does} | {knob.reason} |"
        for knob in KNOBS
    ]
    return "\n".join(lines) + "\n"
