"""The functions of the public face that need a client; without one they do nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from toolfault.errors import ToolError, extend_redaction, is_validation_error
from toolfault.integrations import _discover
from toolfault.telemetry._client import Client
from toolfault.telemetry._config import Config, parse_dsn, resolve
from toolfault.telemetry._conversations import Conversation, current_conversation, name_of, on_end
from toolfault.telemetry._exit import at_exit
from toolfault.telemetry._guard import FAILED, guard, warn
from toolfault.telemetry._queue import Stats
from toolfault.telemetry._release import detect_agent, detect_release
from toolfault.telemetry._transport import Transport
from toolfault.tools import report, was_reported
from toolfault.tools._call import observe, time_calls_by, unobserve
from toolfault.tools._settings import override_defaults

conversation = Conversation

_client: Client | None = None
_closed: list[Client] = []  # the last client that was closed: `stats` still answers for it
_settings = Config()  # of the latest init, also where it started no client


def init(  # noqa: PLR0913 - the documented settings, all optional and keyword-only but the first
    dsn: str | None = None,
    *,
    agent: str | None = None,
    environment: str | None = None,
    release: str | None = None,
    successes: str | None = None,
    sample_rate: float | None = None,
    failure_sample_rate: float | None = None,
    ignore: Any = None,
    before_send: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any] | None] | None = None,
    capture_values: bool | None = None,
    redact_keys: Any = None,
    keep_keys: Any = None,
    coerce: bool | None = None,
    hints: str | None = None,
    spool_dir: str | os.PathLike[str] | None = None,
    integrations: Any = None,
    transport: Transport | None = None,
    clock: Callable[[], float] | None = None,
) -> Client | None:
    """Start reporting tool calls, once per process; a second call replaces the first.

    Settings are arguments, then ``TOOLFAULT_*`` variables, then defaults
    (``docs/configuration-sdk.md``). A setting that cannot work is reported on the log or stderr
    and left out: this function never raises.

    Args:
        dsn: ``http://KEY@host:port``; without one, and without ``transport``, nothing is sent.
        agent: Name of the agent.
        environment: Deployment environment.
        release: Version of the agent.
        successes: ``"folded"`` into counters or ``"all"`` one by one.
        sample_rate: Share of conversations whose successes are sent one by one.
        failure_sample_rate: Share of conversations whose failures are sent.
        ignore: Exception classes, codes or tool names that are not reported.
        before_send: Last look at each event.
        capture_values: Whether values of arguments travel, redacted; else their type and size do.
        redact_keys: Further secret argument names.
        keep_keys: Argument names that only look secret.
        coerce: Whether tools repair booleans, numbers and JSON given as text.
        hints: ``"derived"`` adds hints made from the declaration.
        spool_dir: Directory where events survive the death of the process.
        integrations: Agent frameworks that are hooked: ``"auto"`` for all that get loaded, names
            of them, or False. See ``toolfault.instrument``.
        transport: Carries batches instead of HTTP (tests, other channels).
        clock: Present time in seconds since the epoch, for times and durations (tests, history).

    Returns:
        The client, or None when nothing will be sent.
    """
    return start(dict(locals()), transport, clock)


def start(
    arguments: Mapping[str, Any],
    transport: Transport | None = None,
    clock: Callable[[], float] | None = None,
    *,
    here: bool = True,
) -> Client | None:
    """Start a client as ``init`` does, which see.

    Args:
        arguments: Settings; None stands for "not given".
        transport: Carries batches instead of HTTP.
        clock: Present time.
        here: Whether the agent is this program, so that its release can be found here.
    """
    answer = guard("init failed", _start, arguments, transport, clock, here)
    if answer is FAILED:
        warn("init failed; nothing is sent")
    started: Client | None = None if answer is FAILED else answer
    return started


def _start(
    arguments: Mapping[str, Any],
    transport: Transport | None,
    clock: Callable[[], float] | None,
    here: bool,
) -> Client | None:
    config, complaints = resolve(arguments, os.environ)
    for complaint in complaints:
        warn(complaint)
    close()
    _set_defaults(config)
    if config.integrations:
        _discover.start(config.integrations)
    dsn = None if config.dsn is None else parse_dsn(config.dsn)
    if dsn is None and transport is None:
        return None
    config.agent = config.agent or detect_agent(os.environ)
    config.release = config.release or (detect_release(os.environ) if here else None)
    started = Client(config, dsn=dsn, transport=transport, clock=clock)
    swap(started)
    at_exit(close)
    return started


def _set_defaults(config: Config) -> None:
    """Pass on the settings of the layers below; those that were set before are forgotten."""
    global _settings  # noqa: PLW0603 - one per process, as there is one client
    if _of_tools(config) != _of_tools(_settings):
        override_defaults(coerce=config.coerce, hints=config.hints)
        extend_redaction(config.redact_keys, config.keep_keys)
    _settings = config


def _of_tools(config: Config) -> tuple[object, ...]:
    return (config.coerce, config.hints, config.redact_keys, config.keep_keys)


def client() -> Client | None:
    """Return the running client, or None."""
    return _client


def put_aside() -> Callable[[], None]:
    """Put the running client and its settings aside; return what closes the next and restores."""
    settings, before = _settings, swap(None)

    def put_back() -> None:
        close()
        swap(before)
        _set_defaults(settings)

    return put_back


def swap(replacement: Client | None) -> Client | None:
    """Make ``replacement`` the client that hears of calls and return the one before.

    Neither is started or stopped.
    """
    global _client
    before, _client = _client, replacement
    if before is not None:
        unobserve(before.observer)
    time_calls_by(None if replacement is None else replacement.host_clock)
    if replacement is not None:
        observe(replacement.observer)
        on_end(replacement.end_conversation)
    return before


def close(timeout: float | None = None, *, ends: bool = True) -> bool:
    """Send what is left within ``timeout`` seconds (two by default) and stop reporting.

    A handler of signals that interrupts a capture cannot close: the end of the process does then.

    Args:
        timeout: Seconds.
        ends: Whether the conversations end, too; another process may go on with them.

    Returns:
        True if nothing was left unsent.
    """
    running = _client
    if running is None:
        return True
    if running.is_capturing:
        return False
    swap(None)
    _closed[:] = [running]
    return running.close(timeout, ends=ends)


def flush(timeout: float | None = None) -> bool:
    """Wait at most ``timeout`` seconds (five by default) until everything captured is delivered.

    Returns:
        True if everything was delivered; also where there is no client.
    """
    return True if _client is None else _client.flush(timeout)


def stats() -> Stats:
    """Return what became of everything captured so far, also after ``close()``.

    All zeros where no client was ever started.
    """
    asked = _client or next(iter(_closed), None)
    return Stats(0, 0, 0, {}, 0) if asked is None else asked.stats()


def capture_failure(
    error: BaseException,
    *,
    tool: str | None = None,
    arguments: Mapping[str, Any] | str | None = None,
    call_id: str | None = None,
) -> str | None:
    """Report a failed call of an agent that keeps its own loop.

    Inside a running ``@toolfault.tool`` call the error joins the one event of that call, and an
    error that such a call has reported already is not reported again.

    Args:
        error: A ``ToolError`` or any exception. The error of a validation library, given with the
            ``arguments`` it is about, is reported issue by issue.
        tool: Name of the tool; needed for plain exceptions.
        arguments: What the model sent; never transmitted, only fingerprinted.
        call_id: The provider's id of the call.

    Returns:
        The event id, or None when nothing was sent.
    """
    running = _client
    if running is None:
        return None
    given = (running, error, tool, arguments, call_id)
    event_id: str | None = guard("failure not captured", _capture_failure, *given, otherwise=None)
    return event_id


def _capture_failure(
    running: Client,
    error: BaseException,
    tool: str | None,
    arguments: Mapping[str, Any] | str | None,
    call_id: str | None,
) -> str | None:
    if was_reported(error, tool):
        return None
    failure = _as_tool_error(error, tool, arguments)
    if report(failure, tool=tool):
        return None
    return running.capture_failure(failure, arguments=arguments, call_id=call_id)


def _as_tool_error(error: BaseException, tool: str | None, arguments: object) -> ToolError:
    if isinstance(error, ToolError):
        return error
    name = name_of(tool) or "unknown"
    if arguments is not None and is_validation_error(error):
        return ToolError.from_validation_error(name, error, arguments)
    return ToolError.from_exception(name, error)


def record_change(label: str, *, tool: str | None = None, kind: str = "manual") -> str | None:
    """Mark the moment at which something was improved, for before-and-after comparisons.

    Args:
        label: What changed, at most 200 characters.
        tool: The tool it concerns; None for all.
        kind: ``manual``, ``release``, ``schema`` or ``variant``.

    Returns:
        The event id, or None without a client.
    """
    return None if _client is None else _client.record_change(label, tool=tool, kind=kind)


def set_tags(**tags: str) -> None:
    """Label the further calls of the present conversation; outside one, of the whole process."""
    present = current_conversation()
    if present is not None:
        present.set_tags(**tags)
    elif _client is not None:
        _client.set_tags(tags)
