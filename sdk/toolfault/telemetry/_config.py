"""Settings (arguments over ``TOOLFAULT_*`` variables over defaults), the DSN, and fixed bounds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from toolfault.errors import ToolError


class Config:
    """What a host can set; no named tuple, which takes milliseconds to make of so many fields.

    ``docs/configuration-sdk.md`` says what each does, and why its default is what it is.
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

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)

    def ignores(self, error: ToolError) -> bool:
        """Whether the host wants to hear nothing of a failure."""
        for rule in self.ignore:
            if isinstance(rule, str):
                if rule in (str(error.code), error.tool, type(error.cause).__name__):
                    return True
            elif isinstance(error, rule) or isinstance(error.cause, rule):
                return True
        return False


class Limits:
    """Bounds on memory, batches and time; the numbers are those of the wire protocol.

    They are no settings: a host that has to tune them has found a defect. Tests shorten the times
    through the ``limits`` of ``Client``.

    Args:
        bounds: Those that are not as below.

    Raises:
        TypeError: There is no bound of that name.

    Attributes:
        queue_events: Events kept in memory; the oldest is dropped beyond it. A replayed history
            comes in bursts of thousands, and the bound that protects the host is the next one.
        queue_bytes: Estimated bytes kept in memory.
        batch_events: Events in one request; well under the collector's 1,000.
        batch_bytes: Uncompressed bytes in one request; well under the collector's 20 MiB, so
            that a slow link is given up on rarely and a retry repeats little.
        event_bytes: Encoded bytes of one event; the collector refuses more.
        batch_seconds: How long the first event of a batch waits for company.
        request_seconds: Whole duration of one request, connecting included.
        backoff_base: First upper bound of the random wait after a failed request, seconds.
        backoff_cap: Largest upper bound of that wait, seconds.
        flush_seconds: How long ``flush()`` waits when it is given no timeout.
        exit_seconds: How long the process may be held at exit.
        fold_seconds: How long folded successes are collected before they are queued.
        fold_rows: Counters kept before they are queued early.
        adopt_seconds: How often the spool is searched for what dead processes left.
        idle_seconds: A conversation without a call for so long has ended.
        spool_bytes: Bytes of all segments in the spool directory.
        segment_bytes: A segment is ended at this size; it bounds what a crash sends again.
        largest_segment: Bytes read of a segment found on disk.
        conversations: Conversations followed at a time; the one idle longest is ended beyond it.
        conversation_lanes: Kinds of calls (tool, agent, model, variant) followed in all of them;
            some 450 bytes each, where a model invents long names.
        executions: Successes of tools that are not idempotent, by conversation, tool and
            arguments, by which a repeated one is known; some 300 bytes each.
    """

    queue_events: int = 10_000
    queue_bytes: int = 16 * 1024 * 1024
    batch_events: int = 200
    batch_bytes: int = 1024 * 1024
    event_bytes: int = 256 * 1024
    batch_seconds: float = 1.0
    request_seconds: float = 10.0
    backoff_base: float = 1.0
    backoff_cap: float = 60.0
    flush_seconds: float = 5.0
    exit_seconds: float = 2.0
    fold_seconds: float = 60.0
    fold_rows: int = 500
    adopt_seconds: float = 60.0
    idle_seconds: float = 1_800.0
    spool_bytes: int = 64 * 1024 * 1024
    segment_bytes: int = 1024 * 1024
    largest_segment: int = 4 * 1024 * 1024
    conversations: int = 2_000
    conversation_lanes: int = 20_000
    executions: int = 10_000

    def __init__(self, **bounds: float) -> None:
        unknown = [name for name in bounds if name not in Limits.__annotations__]
        if unknown:
            raise TypeError(f"there is no bound {unknown[0]!r}")
        vars(self).update(bounds)

    def with_(self, **bounds: float) -> Limits:
        """Return the same bounds but for those given."""
        return Limits(**{**vars(self), **bounds})


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


# How each setting is read, and what it looks like where it cannot be.
_SETTINGS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "dsn": (_dsn, "`http://KEY@host:port/prefix`"),
    "agent": (_label, "text, at most 128 characters"),
    "environment": (_label, "text, at most 128 characters"),
    "release": (_label, "text, at most 128 characters"),
    "successes": (_one_of("folded", "all"), "`folded` or `all`"),
    "sample_rate": (_rate, "number from 0 to 1"),
    "failure_sample_rate": (_rate, "number from 0 to 1"),
    "ignore": (_ignored, "exception classes, error codes or tool names"),
    "before_send": (_callable, "callable `(event, hint) -> event or None`"),
    "capture_values": (_flag, "`true` or `false`"),
    "redact_keys": (_words, "comma-separated words or a list"),
    "keep_keys": (_words, "comma-separated words or a list"),
    "coerce": (_flag, "`true` or `false`"),
    "hints": (_one_of("derived"), "`derived`"),
    "spool_dir": (_text, "directory"),
    "integrations": (_integrations, "`auto`, comma-separated names or a list, or `false`"),
}


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
    for name, (read, form) in _SETTINGS.items():
        sources = [(f"init({name}=...)", arguments.get(name))]
        if name != "before_send":  # no text can be one
            variable = f"TOOLFAULT_{name.upper()}"
            sources.append((variable, variables.get(variable) or None))
        for source, given in sources:
            if given is None:
                continue
            try:
                values[name] = read(given)
                break
            except DsnError as error:
                complaints.append(f"{source} is ignored: {error}")
            except Exception:  # noqa: BLE001 - a host object may raise anything when read
                complaints.append(f"{source} is ignored: expected {form}")
    return Config(**values), complaints


# -- the DSN --------------------------------------------------------------------------------------

_HINT = "expected a DSN such as http://KEY@127.0.0.1:8321 or https://KEY@errors.example.com/prefix"


class DsnError(ValueError):
    """A text is no DSN; the message says what is missing and never shows the text."""


class Dsn(NamedTuple):
    """A parsed DSN.

    Attributes:
        scheme: ``http`` or ``https``.
        host: Host name or address; IPv6 without brackets.
        port: TCP port; 80 or 443 where the DSN names none.
        path: Path prefix without a trailing slash, ``""`` for none.
        key: Ingest key; never shown in messages.
    """

    scheme: str
    host: str
    port: int
    path: str
    key: str

    @property
    def events_path(self) -> str:
        """Path that takes batches of events."""
        return f"{self.path}/v1/events"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def endpoint(self) -> str:
        """The DSN without its key, safe to print."""
        return f"{self.origin}{self.path}"

    def __repr__(self) -> str:
        return f"Dsn({self.endpoint})"


def parse_dsn(text: str) -> Dsn:
    """Return the parts of a DSN.

    Raises:
        DsnError: The text is no DSN. It may hold the key in the wrong place.
    """
    scheme, separator, rest = text.strip().partition("://")
    if not separator or scheme not in ("http", "https"):
        raise DsnError(f"DSN has no http:// or https:// at its start; {_HINT}")
    authority, _, path = rest.partition("/")
    key, at, address = authority.rpartition("@")
    if not at or not key:
        raise DsnError(f"DSN has no key before the @; {_HINT}")
    if not key.isascii() or not key.isprintable() or " " in key or ":" in key or len(key) > 128:
        raise DsnError(f"DSN key has characters that no key has; {_HINT}")
    host, port = _host_and_port(address, 443 if scheme == "https" else 80)
    if any(mark in path for mark in "?#") or not path.isascii() or not path.isprintable():
        raise DsnError(f"DSN path has characters that a prefix cannot have; {_HINT}")
    prefix = path.strip("/")
    return Dsn(scheme, host, port, f"/{prefix}" if prefix else "", key)


def _host_and_port(address: str, default: int) -> tuple[str, int]:
    if address.startswith("["):
        host, bracket, tail = address[1:].partition("]")
        if not bracket:
            raise DsnError(f"DSN has an IPv6 address without its closing bracket; {_HINT}")
    else:
        host, colon, tail = address.partition(":")
        tail = colon + tail
    if not host or not host.isascii() or not host.isprintable() or " " in host:
        raise DsnError(f"DSN has no host after the @; {_HINT}")
    if not tail:
        return host, default
    digits = tail[1:]
    if not tail.startswith(":") or not digits.isdigit() or not 0 < int(digits) < 65536:
        raise DsnError(f"DSN has a port that is not a number from 1 to 65535; {_HINT}")
    return host, int(digits)
