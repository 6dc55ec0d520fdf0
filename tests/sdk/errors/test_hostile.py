"""Hostile payloads: nothing raises, everything is JSON, everything is bounded.

The quick profile tries some dozens; `TOOLFAULT_LONG=1`, which the last test sets, tries 10,000.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolfault.coerce import (
    coerce_bool,
    coerce_date,
    coerce_enum,
    coerce_float,
    coerce_int,
    coerce_list,
    coerce_strip,
    near_misses,
)
from toolfault.errors import (
    Issue,
    ToolError,
    ToolInvocationError,
    ToolResult,
    default_adapt_error,
    redacted_repr,
    safe_repr,
    safe_text,
    to_jsonable,
    type_name,
)
from toolfault.formatting import format_validation_errors

LONG = bool(os.environ.get("TOOLFAULT_LONG"))
EXAMPLES = 10_000 if LONG else 25
HOSTILE = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def _raising(*_: object, **__: object) -> Any:
    raise RuntimeError("hostile")


def _endless(*_: object, **__: object) -> Any:
    while True:
        pass


METHODS = ["__repr__", "__str__", "__eq__", "__getattr__", "__hash__", "__bool__", "__len__"]
METHODS += ["__iter__", "__format__", "__contains__", "__getitem__", "__int__", "__float__"]


def _instance(names: list[str], endless: bool, lies: bool, base: type) -> object:
    """An object whose methods raise or never return, and whose class may lie."""
    body: dict[str, Any] = dict.fromkeys(names, _endless if endless else _raising)
    if lies:
        body["__class__"] = property(_raising)
    try:
        return type("Hostile", (base,), body)()
    except TypeError:
        return object()


def _cyclic(value: object) -> object:
    ring: list[object] = [value]
    ring.append({"again": ring})
    return ring


hostile_objects = st.builds(
    _instance,
    st.lists(st.sampled_from(METHODS), min_size=1, unique=True),
    st.booleans(),
    st.booleans(),
    st.sampled_from([object, str, int, float, list, dict, Exception]),
)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=30),
    st.text(alphabet=st.characters(categories=["Cs", "Cc", "Cf"]), max_size=10),
    st.binary(max_size=30),
    st.just("x" * 1_000_000),
    st.just(b"y" * 1_000_000),
    st.none().map(lambda _: 10**5_000),
    st.just(range(10**12)),
    st.sampled_from(
        ["password=hunter2", "sk-abcdef1234567890", "\ud800", "\x00", "<|tool_call_end|>"]
    ),
    hostile_objects,
)
keys = st.one_of(
    st.text(max_size=10), st.sampled_from(["password", "items", "a.b", "", "__class__"])
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4),
        st.tuples(inner, inner),
        inner.map(_cyclic),
        inner.map(lambda v: (x for x in [v])),
    ),
    max_leaves=8,
)
texts = st.one_of(st.text(max_size=60), st.just("z" * 200_000), leaves)


class Errors(ValueError):
    """A validation error with hostile content."""

    def __init__(self, found: object) -> None:
        super().__init__("odd")
        self.found = found

    def errors(self) -> object:
        return self.found


def check_failure(error: ToolError) -> None:
    """Every output of one failure is text or JSON, and bounded."""
    for text in error.renderings().values():
        assert text
        assert len(text) <= 8_000
        text.encode("utf-8")
    payload = error.to_llm_payload()
    assert len(json.dumps(payload, allow_nan=False)) <= 8_192
    assert len(payload) == 14
    result: ToolResult[Any] = ToolResult.failure(error)
    json.dumps(result.to_dict(), allow_nan=False).encode("utf-8")
    for form in (result.to_tool_message("c"), result.to_anthropic("c"), result.to_mcp()):
        assert len(json.dumps(form)) <= 40_000
    assert result.to_openai_text()
    assert str(error)
    assert error.fingerprint


@HOSTILE
@given(texts, texts, values, texts, values, texts, st.sampled_from(["parameter", "internal"]))
def test_authored_failures_take_anything(
    message, field, received, snippet, context, hint, category
) -> None:
    """[P-05][P-07] Any object in any field gives bounded text and JSON."""
    error = ToolError(
        "t",
        message,
        category=category,
        field=field,
        expected=hint,
        received=received,
        snippet=snippet,
        retry_hint=hint,
        retry_context=context if type(context) is dict else {"c": context},
        llm_message=None,
        context=field,
    )
    check_failure(error)


@HOSTILE
@given(values, st.lists(st.one_of(keys, st.integers(-1, 3)), max_size=4), texts, values)
def test_validation_errors_take_anything(args, loc, message, value) -> None:
    """[P-05][H-02] Any arguments, path, message and input give one failure."""
    found = [
        {"type": kind, "loc": tuple(loc), "msg": message, "input": value, "ctx": args}
        for kind in ("int_type", "missing", "union_tag_invalid", "le", "too_short")
    ]
    exc = Errors(found)

    check_failure(ToolError.from_validation_error("t", exc, args))
    check_failure(default_adapt_error(ToolInvocationError("validation", exc, args)))
    assert len(format_validation_errors(exc)) < 40_000


@HOSTILE
@given(values)
def test_looking_at_anything_is_safe(value) -> None:
    """[P-05][E1] Representations, JSON and type names of anything are bounded."""
    assert len(safe_repr(value, 300)) <= 300
    assert len(redacted_repr(value, key="password", limit=300)) <= 300
    assert len(safe_text(value)) <= 8_000
    assert type_name(value)
    for redact in (True, False):
        json.dumps(to_jsonable(value, redact=redact), allow_nan=False).encode("utf-8")


@HOSTILE
@given(values)
def test_results_take_anything(value) -> None:
    """[K-05][K-06] Any value of a tool has a contract dict and a message."""
    result = ToolResult.ensure(value)

    json.dumps(result.to_dict(), allow_nan=False)
    json.dumps(result.to_tool_message("c"), allow_nan=False)
    json.dumps(result.to_mcp(), allow_nan=False)
    check_failure(ToolError.from_returned("t", {"error": value, "error_code": value}))


def test_a_returned_code_is_read_as_text() -> None:
    """[W-05] Text and code may be of a class derived from `str`, whose own methods nobody asks."""
    for method in ("__eq__", "__hash__", "__str__", "__len__", "strip"):
        hostile = type("Hostile", (str,), {"__hash__": str.__hash__, method: _raising})
        returned = {"error": hostile("late"), "error_code": hostile("io")}
        failure = ToolError.from_returned("t", returned)
        assert (failure.code, failure.message) == ("io", "late"), method


@HOSTILE
@given(values, st.sampled_from([ValueError, RuntimeError, KeyError, OSError]))
def test_exceptions_of_anything_are_classified(value, kind) -> None:
    """[W-05][K-05] An exception made of anything is a failure."""
    exc = kind(value)
    check_failure(ToolError.from_exception("t", exc))
    check_failure(default_adapt_error(ToolInvocationError("deserialize", exc, value)))


@HOSTILE
@given(
    values,
    st.sampled_from(["boolean", "integer", "number", "array", "object", "'a' or 'b'", "<= 5"]),
)
def test_coercers_and_remedies_take_anything(value, expected) -> None:
    """[H-07][H-08] A coercer returns what it does not apply to unchanged, and never raises."""
    for coerce in (coerce_bool, coerce_int, coerce_float, coerce_strip, coerce_date):
        coerced = coerce(value)
        assert coerced is value or type(value) is str or str in type.mro(type(value))
    coerce_list(value)
    coerce_enum(value, ["a", "b"])
    assert isinstance(near_misses(value, Issue("f", "wrong_type", expected=expected)), tuple)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_ten_thousand_of_each() -> None:
    """[P-05] The hostile payloads of this file, of tools and of the client, 10,000 each."""
    sdk = Path(__file__).parents[1]
    entry = f"{sdk / 'telemetry' / 'test_host_safety.py'}::test_no_payload_raises_into_the_host"
    # Two processes take one test after the other.
    options = [
        "-q",
        "-n",
        "2",
        "--dist",
        "load",
        "--maxschedchunk",
        "1",
        "-m",
        "not long",
        "--timeout",
        "3600",
        # pytest keeps every line that is logged: gigabytes, of so many failures.
        "-p",
        "no:logging",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, __file__, sdk / "tools/test_hostile.py", entry],
        env={**os.environ, "TOOLFAULT_LONG": "1", "TOOLFAULT_HOSTILE_EXAMPLES": "10000"},
        cwd=sdk.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:]
