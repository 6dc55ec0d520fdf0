"""Shared checks of arguments: each returns the value or raises a `ToolError` that says all.

Use them in tools, several at once with `collect`, in types with `Check`, and add your own with
`register_validator`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from enum import Enum
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from toolfault.errors import (
    ConfigError,
    ToolError,
    did_you_mean,
    listed,
    redacted_repr,
    type_and_size,
    type_name,
)
from toolfault.errors._cleaning import strict_json
from toolfault.errors._types import is_a, is_any

F = TypeVar("F", bound=Callable[..., object])
R = TypeVar("R")
V = TypeVar("V")

__all__ = [
    "Check",
    "Collector",
    "collect",
    "count_tokens",
    "exactly_one",
    "mutually_exclusive",
    "register_validator",
    "registered_validators",
    "validate",
    "validate_ascii_name",
    "validate_bounded_int",
    "validate_bounded_number",
    "validate_choice",
    "validate_context_limit",
    "validate_date",
    "validate_datetime",
    "validate_extension",
    "validate_json",
    "validate_length",
    "validate_path",
    "validate_pattern",
    "validate_regex",
    "validate_time",
    "validate_unified_diff",
    "validate_url",
    "validator_named",
]

_LONGEST_RECEIVED = 2_000


def _fail(  # noqa: PLR0913 - the parts of an error
    tool: str,
    field: str,
    value: object,
    code: str,
    words: str,
    expected: str,
    *,
    named: bool = True,
    received: str | None = None,
    snippet: str | None = None,
    **details: object,
) -> ToolError:
    """The error of one argument.

    Args:
        tool: The tool whose argument it is.
        field: The argument.
        value: What was sent; represented and redacted unless *received* or *snippet* is given.
        code: What is wrong.
        words: The same in words, what follows the name of the field.
        expected: What would have been right.
        named: Whether the message begins with the name of the field.
        received: The representation to show in place of the value's own.
        snippet: The text itself, for long values; then no representation is shown.
        details: Anything else `ToolError` takes.
    """
    details.update(field=field, expected=expected, snippet=snippet)
    if received is not None:
        details.update(received=received)
    elif snippet is None:
        details.update(
            received=redacted_repr(value, key=field, limit=_LONGEST_RECEIVED),
            received_type=type_name(value),
        )
    message = f"{field} {words}" if named else words
    error = ToolError(tool, message, code, **details)  # type: ignore[arg-type]
    error.stand_in = type_and_size(value)
    return error


_registered: dict[str, Callable[..., object]] = {}


def register_validator(name: str, validator: F) -> F:
    """Register *validator* under *name* and return it.

    A validator takes `tool`, `field` and `value` by keyword, and options of its own; it returns
    the value or raises `ToolError`.

    Raises:
        ConfigError: *validator* is no function, or *name* is taken by another one.
    """
    if not callable(validator):
        raise ConfigError(f"the validator {name!r} must be a function")
    if _registered.setdefault(name, validator) is not validator:
        raise ConfigError(f"a validator is registered as {name!r} already: choose another name")
    return validator


def registered_validators() -> dict[str, Callable[..., object]]:
    """All validators by name, the built-in ones included."""
    return dict(_registered)


def validator_named(name: str) -> Callable[..., object]:
    """The validator registered under *name*.

    Raises:
        ConfigError: There is none.
    """
    found = _registered.get(name)
    if found is None:
        hint = did_you_mean(name, _registered) or "See registered_validators()."
        raise ConfigError(f"no validator is registered as {name!r}. {hint}")
    return found


def validate(name: str, *, tool: str, field: str, value: object, **options: object) -> object:
    """*value*, checked by the validator registered under *name*.

    Raises:
        ConfigError: There is no such validator.
        ToolError: The validator refused the value.
    """
    return validator_named(name)(tool=tool, field=field, value=value, **options)


class Check:
    """A validator with its options, to be written into a type.

    `Annotated[int, Check(validate_bounded_int, min=1, max=10)]` works in pydantic models (without
    this package importing pydantic: a failure becomes an error of the field, with its code, next
    to all other errors) and in the parameters of a tool function.

    Args:
        validator: A validator of this package, one of your own of the same form, or the name of
            a registered one.
        options: What it takes besides `tool`, `field` and `value`.

    Raises:
        ConfigError: No validator is registered under that name.
    """

    def __init__(self, validator: Callable[..., object] | str, **options: object) -> None:
        if isinstance(validator, str):
            validator = validator_named(validator)
        if not callable(validator):
            raise ConfigError("Check takes a validator function or the name of a registered one")
        self.validator = validator
        self.options = options

    def validate(self, *, tool: str, field: str, value: object) -> object:
        """*value*, checked.

        Raises:
            ToolError: The validator refused it.
        """
        return self.validator(tool=tool, field=field, value=value, **self.options)

    def __get_pydantic_core_schema__(
        self, source: object, handler: Callable[[object], dict[str, object]]
    ) -> dict[str, object]:
        return {
            "type": "function-after",
            "function": {**_wants_info(handler), "function": self._in_pydantic},
            "schema": handler(source),
        }

    def _in_pydantic(self, value: object, info: object) -> object:
        field = getattr(info, "field_name", None) or "value"
        try:
            return self.validate(tool="", field=field, value=value)
        except ToolError as error:
            raise _pydantic_error(error, field) from error

    def __repr__(self) -> str:
        return f"Check({getattr(self.validator, '__name__', 'validator')})"


def _wants_info(handler: object) -> dict[str, object]:
    """How pydantic-core's plain schemas say that a function is told the name of its field.

    Since pydantic 2.4 as `with_info_after_validator_function` writes it; before, a field and
    everything else had forms of their own.
    """
    schemas = sys.modules.get("pydantic_core.core_schema")
    if hasattr(schemas, "with_info_after_validator_function"):
        return {"type": "with-info"}
    try:
        return {"type": "field", "field_name": handler.field_name}  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - the handler of a type that is no field
        return {"type": "general"}


def _pydantic_error(error: ToolError, field: str) -> Exception:
    """*error* as an error of the field; pydantic adds the field, so the message leaves it out."""
    message = error.message.removeprefix(f"{field} ")
    context = {"text": message}
    if error.expected is not None:
        context["expected"] = error.expected
    pydantic_core: Any = sys.modules["pydantic_core"]  # which has called the validator
    made: Exception = pydantic_core.PydanticCustomError(error.code.value, "{text}", context)
    return made


def _given(values: Mapping[str, object]) -> list[str]:
    """The names whose value counts as given: neither None nor False."""
    return [name for name, value in values.items() if value is not None and value is not False]


def mutually_exclusive(*, tool: str, values: Mapping[str, object]) -> str | None:
    """The one name of *values* that is given, or None; None and False count as not given.

    Raises:
        ToolError: `invalid_input` when several are given.
    """
    given = _given(values)
    if len(given) > 1:
        names = ", ".join(values)
        raise _group_error(
            tool, f"only one of {names} may be given, not {', '.join(given)}", values
        )
    return given[0] if given else None


def exactly_one(*, tool: str, values: Mapping[str, object]) -> str:
    """The one name of *values* that is given; None and False count as not given.

    Raises:
        ToolError: `invalid_input` when several are given, `missing_field` when none is.
    """
    found = mutually_exclusive(tool=tool, values=values)
    if found is None:
        raise _group_error(
            tool, f"exactly one of {', '.join(values)} must be given", values, code="missing_field"
        )
    return found


def _group_error(
    tool: str, message: str, values: Mapping[str, object], *, code: str = "invalid_input"
) -> ToolError:
    return ToolError(tool, message, code, retry_context={"fields": list(values)})


def collect(tool: str, *, context: str = "parameters") -> Collector:
    """Run several validators and report all failures as one.

    ```python
    with collect("http_request") as check:
        port = check(validate_bounded_int, field="port", value=port, min=1, max=65535)
        url = check(validate_url, field="url", value=url)
    ```

    Args:
        tool: The tool whose arguments are validated.
        context: What is validated, in words.

    Raises:
        ToolError: On leaving the block, when any validator failed.
    """
    return Collector(tool, context=context)


class Collector:
    """Gathers the failures of validators; made by `collect`."""

    def __init__(self, tool: str, *, context: str = "parameters") -> None:
        self.tool = tool
        self.context = context
        self.errors: list[ToolError] = []

    def __call__(self, validator: Callable[..., R], **options: object) -> R | None:
        """The result of *validator* with *options*, or None when it failed."""
        try:
            return validator(**{"tool": self.tool, **options})
        except ToolError as error:
            self.errors.append(error)
            return None

    def add(self, error: ToolError) -> None:
        """Add a failure found otherwise."""
        self.errors.append(error)

    def raise_if_any(self) -> None:
        """Raise all failures so far as one.

        Raises:
            ToolError: When there is a failure.
        """
        if self.errors:
            raise ToolError.merge(self.errors, tool=self.tool, context=self.context)

    def __enter__(self) -> Collector:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(exc, ToolError):
            self.errors.append(exc)
        elif exc is not None:
            return
        self.raise_if_any()


_BYTES_PER_TOKEN = 4


def validate_bounded_int(
    *,
    tool: str,
    field: str,
    value: object,
    min: int | None = None,  # noqa: A002 - the names of the contract
    max: int | None = None,  # noqa: A002
) -> int:
    """*value*, an integer within *min* and *max* (both allowed).

    Raises:
        ToolError: `wrong_type` for anything but an integer (a boolean is none),
            `field_too_large` or `field_too_small` outside the bounds.
    """
    if not is_a(value, int) or is_a(value, bool):
        raise _fail(tool, field, value, "wrong_type", "must be an integer", "integer")
    _check_bounds(tool, field, value, low=min, high=max)
    return value


def validate_bounded_number(
    *,
    tool: str,
    field: str,
    value: Any,
    min: float | None = None,  # noqa: A002 - the names of the contract
    max: float | None = None,  # noqa: A002
) -> float:
    """*value*, a finite number within *min* and *max* (both allowed).

    Raises:
        ToolError: `wrong_type` for anything but a number, `invalid_format` for NaN and
            infinities, `field_too_large` or `field_too_small` outside the bounds.
    """
    if not is_any(value, int, float) or is_a(value, bool):
        raise _fail(tool, field, value, "wrong_type", "must be a number", "number")
    if is_a(value, float) and value - value != 0:
        raise _fail(
            tool, field, value, "invalid_format", "must be a finite number", "finite number"
        )
    number: float = value
    _check_bounds(tool, field, number, low=min, high=max)
    return number


def _check_bounds(
    tool: str, field: str, value: float, *, low: float | None, high: float | None
) -> None:
    if high is not None and value > high:
        bound = f"<= {high}"
        raise _fail(tool, field, value, "field_too_large", f"must be {bound}", bound)
    if low is not None and value < low:
        bound = f">= {low}"
        raise _fail(tool, field, value, "field_too_small", f"must be {bound}", bound)


def validate_length(
    *,
    tool: str,
    field: str,
    value: V,
    min: int | None = None,  # noqa: A002 - the names of the contract
    max: int | None = None,  # noqa: A002
) -> V:
    """*value*, a text, list or object whose length is within *min* and *max* (both allowed).

    Raises:
        ToolError: `wrong_type` for what has no length, `field_too_large` or `field_too_small`
            outside the bounds.
    """
    if not is_any(value, str, bytes, list, tuple, dict, set, frozenset):
        raise _fail(
            tool,
            field,
            value,
            "wrong_type",
            "must be a string, array or object",
            "string, array or object",
        )
    sized: Any = value
    size = len(sized)
    if max is not None and size > max:
        raise _wrong_length(tool, field, value, "field_too_large", bound=f"<= {max}")
    if min is not None and size < min:
        raise _wrong_length(tool, field, value, "field_too_small", bound=f">= {min}")
    return value


def _wrong_length(tool: str, field: str, value: object, code: str, *, bound: str) -> Exception:
    return _fail(tool, field, value, code, f"must have a length {bound}", f"length {bound}")


def count_tokens(text: str) -> int:
    """About how many tokens *text* has: its UTF-8 bytes divided by four, rounded up."""
    size = len(text.encode("utf-8", "replace"))
    return -(-size // _BYTES_PER_TOKEN)


def validate_context_limit(
    *,
    tool: str,
    field: str,
    value: object,
    max: int,  # noqa: A002 - the names of the contract
    counter: Callable[[str], int] = count_tokens,
) -> object:
    """*value*, a number of tokens or a text of at most *max* tokens.

    Args:
        tool: The tool, for the error.
        field: The argument, for the error.
        value: A number of tokens, or the text itself.
        max: The most tokens allowed, itself included.
        counter: Counts the tokens of a text; by default UTF-8 bytes divided by four.

    Raises:
        ToolError: `field_too_large` above *max*, `wrong_type` for neither text nor integer.
    """
    if not is_a(value, str):
        return validate_bounded_int(tool=tool, field=field, value=value, max=max)
    count = counter(value)
    if count > max:
        raise _fail(
            tool,
            field,
            value,
            "field_too_large",
            f"must be <= {max} tokens",
            f"<= {max} tokens",
            received=f"about {count} tokens",
        )
    return value


_MOST_CHOICES = 1_000
_LONGEST_REGEX = 1_000
_FORBIDDEN_IN_PATH = frozenset('<>"|?*')
_SCALARS = (str, int, float, bool, type(None))


def _text(tool: str, field: str, value: object) -> str:
    if not is_a(value, str):
        raise _fail(tool, field, value, "wrong_type", "must be a string", "string")
    return value


def validate_choice(
    *, tool: str, field: str, value: V, choices: Iterable[object], suggest: bool = False
) -> V:
    """*value*, one of *choices* (of the same type: True is not 1).

    Args:
        tool: The tool, for the error.
        field: The argument, for the error.
        value: What was sent.
        choices: The allowed values, or an `Enum` class (its values).
        suggest: Whether the model reads `Did you mean '...'?`; else the suggestion only waits
            in the error's `suggestion`.

    Raises:
        ToolError: `invalid_choice`.
    """
    allowed = [getattr(choice, "value", choice) for choice in choices][:_MOST_CHOICES]
    plain = value.value if is_a(value, Enum) else value
    if type(plain) in _SCALARS and any(type(c) is type(plain) and c == plain for c in allowed):
        return value
    words = listed(allowed) or "no value at all"
    suggestion = did_you_mean(value, [c for c in allowed if isinstance(c, str)])
    raise _fail(
        tool,
        field,
        value,
        "invalid_choice",
        f"must be {words}" if len(allowed) < 2 else f"must be one of {words}",
        words,
        suggestion=suggestion,
        derived_hint=suggestion if suggest else None,
    )


def validate_path(*, tool: str, field: str, path: object = None, value: object = None) -> str:
    """*path*, a file path of plain characters (also given as *value*).

    Not empty, ASCII, without control characters and without `< > " | ? *`; the reason is in
    `retry_context`.

    Raises:
        ToolError: `wrong_type` or `invalid_format`.
    """
    text = _text(tool, field, value if path is None else path)
    reason = _path_reason(text)
    if reason is None:
        return text
    code, words = reason
    raise _fail(tool, field, text, "invalid_format", words, "path", retry_context={"reason": code})


def _path_reason(text: str) -> tuple[str, str] | None:
    if not text.strip():
        return "empty", "must not be empty"
    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        return "control_characters", "must not contain control characters"
    if not text.isascii():
        return "non_ascii", "must contain ASCII characters only"
    if not _FORBIDDEN_IN_PATH.isdisjoint(text):
        return "invalid_characters", 'must not contain any of < > " | ? *'
    return None


def validate_extension(*, tool: str, field: str, value: object, allowed: Sequence[str]) -> str:
    """*value*, a file name or path with one of the *allowed* extensions.

    Case and a leading dot do not matter; `*` or `any` allows every extension.

    Raises:
        ToolError: `wrong_type` or `invalid_choice`.
    """
    text = _text(tool, field, value)
    wanted = [extension.lower().lstrip(".") for extension in allowed]
    if "*" in wanted or "any" in wanted:
        return text
    name = re.split(r"[/\\]", text)[-1].lower()
    if any(name.endswith(f".{extension}") for extension in wanted):
        return text
    words = listed(f".{extension}" for extension in wanted)
    raise _fail(
        tool,
        field,
        text,
        "invalid_choice",
        f"must have the extension {words}",
        f"extension {words}",
    )


def validate_ascii_name(*, tool: str, field: str, value: object) -> str:
    """*value*, a name of ASCII letters, digits, `_`, `-` and `.` that starts with no dot.

    Raises:
        ToolError: `wrong_type` or `invalid_format`.
    """
    text = _text(tool, field, value)
    if re.fullmatch(r"[A-Za-z0-9_\-][A-Za-z0-9_.\-]*", text) is None:
        raise _fail(
            tool,
            field,
            text,
            "invalid_format",
            "must be a name of ASCII letters, digits, '_', '-' and '.'",
            "name",
        )
    return text


def validate_json(*, tool: str, field: str, value: object) -> str:
    """*value*, a text that holds JSON (RFC 8259: no NaN, no infinities).

    Raises:
        ToolError: `wrong_type` or `malformed_json`.
    """
    text = _text(tool, field, value)
    try:
        strict_json(text)
    except json.JSONDecodeError as exc:
        words = f"must be valid JSON: {exc}"
        raise _fail(tool, field, text, "malformed_json", words, "JSON", snippet=text) from exc
    return text


def validate_url(
    *, tool: str, field: str, value: object, schemes: Sequence[str] = ("http", "https")
) -> str:
    """*value*, an absolute URL with one of *schemes* and a host (RFC 3986).

    Raises:
        ToolError: `wrong_type` or `invalid_format`.
    """
    text = _text(tool, field, value)
    words = " or ".join(schemes)
    problem = ""
    try:
        parts = urlsplit(text)
        if parts.scheme.lower() not in schemes:
            problem = f"must be a URL with the scheme {words}"
        elif not parts.hostname or (parts.port is not None and parts.port == 0):
            problem = "must be a URL with a host"
    except ValueError:
        problem = "must be a valid URL"
    if not problem and any(c.isspace() or not c.isprintable() for c in text):
        problem = "must be a URL without spaces or control characters"
    if problem:
        raise _fail(tool, field, text, "invalid_format", problem, f"URL ({words})")
    return text


def validate_regex(*, tool: str, field: str, value: object) -> str:
    """*value*, a text that is itself a regular expression of Python's `re`.

    Raises:
        ToolError: `wrong_type`, `field_too_large` beyond 1,000 characters, `invalid_format`.
    """
    text = _text(tool, field, value)
    if len(text) > _LONGEST_REGEX:
        bound = f"length <= {_LONGEST_REGEX}"
        raise _fail(tool, field, text, "field_too_large", f"must have a {bound}", bound)
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as exc:
        raise _fail(
            tool,
            field,
            text,
            "invalid_format",
            f"must be a regular expression: {_regex_reason(exc)}",
            "regular expression",
        ) from exc
    return text


def _regex_reason(exc: Exception) -> str:
    """What is wrong with a regular expression and where, without quoting from it.

    Parts of a value are found in no text, so this one, which is sent as it is, must hold none.
    """
    if not isinstance(exc, re.error):
        return str(exc)
    words = re.split(r" (?=[\\?'])|(?<=range) ", exc.msg, maxsplit=1)[0]
    return words if exc.pos is None else f"{words} at position {exc.pos}"


def validate_pattern(*, tool: str, field: str, value: object, pattern: str) -> str:
    """*value*, a text in which the regular expression *pattern* is found.

    Raises:
        ToolError: `wrong_type` or `invalid_format`.
    """
    text = _text(tool, field, value)
    if re.search(pattern, text) is None:
        raise _fail(
            tool,
            field,
            text,
            "invalid_format",
            f"must match the pattern {pattern}",
            f"pattern {pattern}",
        )
    return text


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}$", re.ASCII)
_TIME = re.compile(r"\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+\-]\d{2}:\d{2})?$", re.ASCII)
_DATETIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+\-]\d{2}:\d{2})?$", re.ASCII
)
_FRACTION = re.compile(r"\.(\d{1,6})")


def validate_date(*, tool: str, field: str, value: object) -> str:
    """*value*, a calendar day as `YYYY-MM-DD`.

    Raises:
        ToolError: `wrong_type` or `invalid_format`.
    """
    return _checked(
        tool, field, value, _DATE, read=date.fromisoformat, expected="date (YYYY-MM-DD)"
    )


def validate_time(*, tool: str, field: str, value: object) -> str:
    """*value*, a time of day as `HH:MM[:SS[.ffffff]]`, with an optional UTC offset.

    Raises:
        ToolError: `wrong_type` or `invalid_format`.
    """
    return _checked(tool, field, value, _TIME, read=time.fromisoformat, expected="time (HH:MM:SS)")


def validate_datetime(*, tool: str, field: str, value: object, with_offset: bool = False) -> str:
    """*value*, a date and time as `YYYY-MM-DDTHH:MM:SS`, with an optional UTC offset.

    Args:
        tool: The tool, for the error.
        field: The argument, for the error.
        value: What was sent.
        with_offset: Whether the offset (`Z`, `+02:00`) is required, as in RFC 3339.

    Raises:
        ToolError: `wrong_type` or `invalid_format`.
    """
    text = _checked(
        tool, field, value, _DATETIME, read=datetime.fromisoformat, expected="datetime (ISO 8601)"
    )
    if with_offset and not (text.endswith("Z") or re.search(r"[+\-]\d{2}:\d{2}$", text)):
        raise _fail(
            tool,
            field,
            value,
            "invalid_format",
            "must have a UTC offset (Z or +00:00)",
            "datetime with timezone",
        )
    return text


def _checked(
    tool: str,
    field: str,
    value: object,
    pattern: re.Pattern[str],
    *,
    read: Callable[[str], object],
    expected: str,
) -> str:
    if not is_a(value, str):
        raise _fail(tool, field, value, "wrong_type", "must be a string", expected)
    try:
        _read(value, pattern, read)
    except ValueError as exc:
        raise _fail(
            tool, field, value, "invalid_format", f"must be a {expected}", expected
        ) from exc
    return value


def _read(value: str, pattern: re.Pattern[str], read: Callable[[str], object]) -> None:
    if pattern.match(value) is None:
        raise ValueError("not of this form")
    # Python 3.10 reads neither `Z` nor fractions of other than three or six digits.
    plain = _FRACTION.sub(lambda m: "." + m[1].ljust(6, "0"), value)
    read(plain.replace("Z", "+00:00"))


_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.ASCII)
_EXPECTED = "unified diff with ---/+++ and @@"
_MALFORMED = "expected unified diff with ---/+++ headers and @@ hunks"
_LONGEST_NUMBER = 9


def validate_unified_diff(
    *, tool: str, field: str, diff: object = None, value: object = None
) -> str:
    """*diff*, one or several files as a unified diff (also given as *value*).

    Every file needs a `---` and a `+++` header and a hunk `@@ -l,n +l,n @@` whose line counts are
    those of its lines. Lines between files (`diff --git`, `index`) are ignored.

    Raises:
        ToolError: `wrong_type` or `malformed_diff`, with the diff as snippet.

    Source: the format as written by GNU diffutils ("Detailed Description of Unified Format").
    """
    given = value if diff is None else diff
    if not is_a(given, str):
        raise _fail(tool, field, given, "wrong_type", "must be a string", _EXPECTED)
    problem = _Reader(given).problem()
    if problem is not None:
        raise _fail(
            tool, field, given, "malformed_diff", problem, _EXPECTED, snippet=given, named=False
        )
    return given


class _Reader:
    """Reads a diff line by line; the counts of a hunk decide where it ends."""

    def __init__(self, diff: str) -> None:
        self._lines = [line.rstrip("\r") for line in diff.split("\n")]
        self._at = 0
        self._hunks = 0

    def problem(self) -> str | None:
        """What is wrong, or None."""
        headed = False
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("--- ") and self._next_starts("+++ "):
                headed = True
                self._at += 2
                if not self._next_starts("@@", ahead=0):
                    return _MALFORMED
            elif line.startswith("@@"):
                found = self._hunk() if headed else _MALFORMED
                if found is not None:
                    return found
            elif line[:1] in {" ", "+", "-"} and self._hunks:
                return f"hunk {self._hunks} has more lines than its header counts"
            elif line.startswith(("--- ", "+++ ")):
                return _MALFORMED
            else:
                headed = headed and not line.startswith("diff ")
                self._at += 1
        return None if self._hunks else _MALFORMED

    def _next_starts(self, prefix: str, ahead: int = 1) -> bool:
        place = self._at + ahead
        return place < len(self._lines) and self._lines[place].startswith(prefix)

    def _hunk(self) -> str | None:
        match = _HUNK.match(self._lines[self._at])
        if match is None or any(len(n) > _LONGEST_NUMBER for n in match.groups("")):
            return _MALFORMED
        self._at += 1
        self._hunks += 1
        old = int(match.group(2) or 1)
        new = int(match.group(4) or 1)
        if old + new == 0:
            return f"hunk {self._hunks} has no lines"
        return self._body(old, new)

    def _body(self, old: int, new: int) -> str | None:
        """Read the lines of a hunk of *old* and *new* lines."""
        wanted = (old, new)
        while old > 0 or new > 0:
            line = self._lines[self._at] if self._at < len(self._lines) else None
            # A context line that is empty has often lost its leading space on the way.
            mark = None if line is None else line[:1] or " "
            if mark == " " and old > 0 and new > 0 and not self._only_blank_left():
                old, new = old - 1, new - 1
            elif mark == "-" and old > 0:
                old -= 1
            elif mark == "+" and new > 0:
                new -= 1
            elif mark != "\\":
                return self._miscounted(wanted, (wanted[0] - old, wanted[1] - new))
            self._at += 1
        if self._next_starts("\\", ahead=0):
            self._at += 1
        return None

    def _only_blank_left(self) -> bool:
        return self._at == len(self._lines) - 1 and not self._lines[self._at]

    def _miscounted(self, wanted: tuple[int, int], found: tuple[int, int]) -> str:
        return (
            f"hunk {self._hunks} counts {wanted[0]} old and {wanted[1]} new lines in its header "
            f"but has {found[0]} old and {found[1]} new lines"
        )


for _name, _validator in (
    ("bounded_int", validate_bounded_int),
    ("bounded_number", validate_bounded_number),
    ("length", validate_length),
    ("context_limit", validate_context_limit),
    ("choice", validate_choice),
    ("path", validate_path),
    ("extension", validate_extension),
    ("ascii_name", validate_ascii_name),
    ("unified_diff", validate_unified_diff),
    ("json", validate_json),
    ("url", validate_url),
    ("regex", validate_regex),
    ("pattern", validate_pattern),
    ("date", validate_date),
    ("time", validate_time),
    ("datetime", validate_datetime),
):
    register_validator(_name, _validator)
del _name, _validator
