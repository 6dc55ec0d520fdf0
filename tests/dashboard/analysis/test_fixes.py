"""Fix next: what a fix covers, what it would have saved, and what it does not claim."""

from __future__ import annotations

import pytest

from toolfault_dashboard.analysis.fixes.fixes import add_up, fix_of, tallies
from toolfault_dashboard.analysis.fixes.inference import inferred_remedies
from toolfault_dashboard.analysis.fixes.opportunities import (
    FixFailure,
    FixIssue,
    FixKey,
    opportunities,
)
from toolfault_dashboard.analysis.fixes.remedies import advice


def issue(field: str, code: str = "wrong_type", *near_miss: str, expected: str = "") -> FixIssue:
    """One issue."""
    parts = ["*" if part.isdecimal() else part for part in field.split(".")]
    pattern = ".".join([*parts[:-1], "*"] if code == "unknown_field" else parts)
    return FixIssue(pattern, field, code, near_miss, expected)


def failure(
    *issues: FixIssue,
    chain: str | None = "c1",
    attempt: int = 1,
    after: int = 1,
    code: str = "invalid_input",
    others: int = 0,
    conversation: str = "talk",
) -> FixFailure:
    """One failure."""
    return FixFailure(
        tool="t",
        code=code,
        reason=None,
        conversation=conversation,
        chain_id=chain,
        attempt=attempt,
        calls_after=after,
        other_calls=others,
        abandoned=False,
        occurred_at=1,
        issues=issues,
    )


def _found(*failures: FixFailure) -> dict[FixKey, tuple[float, int]]:
    fixes = add_up(opportunities(failures), weeks=2.0)
    return {fix.key: (fix.saved, fix.failures) for fix in fixes}


def test_a_chain_is_saved_once_from_its_first_covered_failure() -> None:
    """Three failures that one fix covers save the calls after the first, not three times over."""
    bad = issue("port", "wrong_type", "int_from_string")
    key = FixKey("t", "port", "int_from_string")
    assert _found(
        failure(bad, attempt=1, after=3),
        failure(bad, attempt=2, after=2),
        failure(bad, attempt=3, after=1),
    ) == {key: (3.0, 3)}


def test_a_second_problem_is_not_mended_by_the_first_fix() -> None:
    """A failure with bad values in two arguments is covered by neither fix alone."""
    assert _found(
        failure(
            issue("port", "wrong_type", "int_from_string"),
            issue("on", "wrong_type", "bool_from_string"),
        )
    ) == {FixKey("t", "", "open", "invalid_input"): (1.0, 1)}


def test_one_branch_of_a_union_is_enough() -> None:
    """An argument of several types needs one of them to accept the value."""
    found = _found(failure(issue("when"), issue("when", "wrong_type", "date_from_string")))
    assert list(found) == [FixKey("t", "when", "date_from_string")]


@pytest.mark.parametrize(
    ("missing", "unknown", "alike"),
    [
        ("origin", "origin_airport", True),
        ("path", "file_path", True),
        ("user_id", "userId", True),
        ("customer", "costumer", True),
        ("origin", "comment", False),
        ("a", "b", False),
    ],
)
def test_an_unknown_name_like_a_missing_one_is_an_alias(
    missing: str, unknown: str, alike: bool
) -> None:
    """What the model calls an argument is accepted when only one argument can be meant."""
    found = _found(failure(issue(missing, "missing_field"), issue(unknown, "unknown_field")))
    assert (found == {FixKey("t", missing, "alias", unknown): (1.0, 1)}) is alike
    assert (found == {FixKey("t", "", "open", "invalid_input"): (1.0, 1)}) is not alike


@pytest.mark.parametrize(
    ("missing", "unknown", "key"),
    [
        (["items.0.path"], ["items.0.file_path"], ("items.*.path", "file_path")),
        (["items.7.path"], ["items.7.file_path"], ("items.*.path", "file_path")),
        (["items.0.path"], ["items.1.file_path"], None),
        (["configuration.path"], ["configuration.note"], None),
        (["source.path"], ["target.path_2"], None),
        (["path"], ["items.0.path_2"], None),
        (["source_path", "target_path"], ["path"], None),
        (["path"], ["file_path", "path_2"], None),
    ],
)
def test_an_alias_is_of_the_one_argument_that_was_meant(
    missing: list[str], unknown: list[str], key: tuple[str, str] | None
) -> None:
    """It lies where the unknown name does; none is offered where two may be meant."""
    issues = [issue(name, "missing_field") for name in missing]
    found = _found(failure(*issues, *(issue(name, "unknown_field", "alias") for name in unknown)))
    expected = FixKey("t", key[0], "alias", key[1]) if key else None
    assert list(found) == [expected or FixKey("t", "", "open", "invalid_input")]


@pytest.mark.parametrize(
    ("expected", "remedy"),
    [("integer", "default"), ("a boolean", "default"), ("string", "describe"), ("", "describe")],
)
def test_a_single_missing_argument(expected: str, remedy: str) -> None:
    """A number or a switch that is left out wants a default; a text has none to give."""
    left_out = issue("path", "missing_field", expected=expected)
    assert _found(failure(left_out, after=2)) == {FixKey("t", "path", remedy): (2.0, 1)}


def test_what_has_no_remedy_is_listed_with_its_cost() -> None:
    """What no fix covers stands under tool, argument and code; each costs what follows it."""
    found = _found(
        failure(issue("path"), code="not_found", attempt=1, after=3),
        failure(issue("path"), code="not_found", attempt=2, after=2),
        failure(code="timeout", attempt=3, after=1),
        failure(code="timeout", chain=None, after=0),
    )
    assert found == {
        FixKey("t", "path", "open", "not_found"): (2.0, 2),
        FixKey("t", "", "open", "timeout"): (1.0, 2),
    }


def test_every_call_spent_belongs_to_one_failure() -> None:
    """The costs of all failures add up to the calls spent of their chain, whatever covers them.

    Calls of other tools belong to the failure that opened it, giving up to the last one.
    """
    bad = issue("port", "wrong_type", "int_from_string")
    chain = [
        failure(bad, attempt=1, after=4, others=5),
        failure(code="timeout", attempt=2, after=3),
        failure(bad, attempt=4, after=1),
    ]
    chain = [each._replace(abandoned=True) for each in chain]
    found = opportunities(chain)
    assert [each.cost for each in found] == [6.0, 2.0, 1.0]
    assert [each.round_trips for each in found] == [1, 2, 1]
    assert [each.saved for each in found] == [9.0, 2.0, 0.0]
    assert [each.abandoned for each in found] == [False, False, True]


def test_problems_told_one_after_the_other() -> None:
    """Each later failure about an argument not named before is a round trip of telling in parts."""
    chain = [
        failure(issue("a"), attempt=1, after=3),
        failure(issue("b"), attempt=2, after=2),
        failure(issue("a"), attempt=3, after=1),
        failure(issue("c"), attempt=4, after=0),
    ]
    assert _found(*chain) == {
        FixKey("t", "", "all_at_once"): (2.0, 2),
        FixKey("t", "a", "open", "invalid_input"): (2.0, 2),
    }


def test_a_tool_that_does_not_exist_costs_the_detour_too() -> None:
    """Calling an invented tool costs the exchange with the tool that is found instead."""
    assert _found(failure(code="not_available", after=0, others=1)) == {
        FixKey("t", "", "expose"): (1.0, 1)
    }


def test_failures_outside_conversations_cost_no_round_trip() -> None:
    """Without a chain there is a failure to avoid, and nothing known to save."""
    bad = issue("port", "wrong_type", "int_from_string")
    assert _found(failure(bad, chain=None, after=0)) == {
        FixKey("t", "port", "int_from_string"): (0.0, 1)
    }


def test_parts_of_a_window_make_one_fix() -> None:
    """A conversation whose failures are read in several parts is one, in the interval too."""
    bad = issue("port", "wrong_type", "int_from_string")
    rows = [
        failure(bad, chain=f"c{n}", after=1 + n % 3, conversation=f"talk {n % 4}")
        for n in range(12)
    ]
    whole = add_up(opportunities(rows), weeks=2.0)[0]
    parts = [tallies(opportunities(part))[whole.key] for part in (rows[:7], rows[7:9], rows[9:])]
    assert fix_of(whole.key, parts, weeks=2.0) == whole


def test_the_interval_is_of_conversations() -> None:
    """Ten round trips in one conversation say less than one in each of ten."""
    bad = issue("port", "wrong_type", "int_from_string")
    many = [failure(bad, chain=f"c{n}", conversation=f"talk {n}") for n in range(10)]
    one = [failure(bad, chain="c", after=10, conversation="talk")]
    wide, narrow = (add_up(opportunities(rows), weeks=1.0)[0] for rows in (one, many))
    assert wide.per_week == narrow.per_week == 10
    assert wide.high is not None
    assert narrow.high is not None
    assert wide.high > narrow.high
    assert wide.low == 0.0
    assert add_up(opportunities(many), weeks=None)[0].per_week is None


@pytest.mark.parametrize(
    ("expected", "received", "kind", "remedies"),
    [
        ("boolean", "'true'", "str", ("bool_from_string",)),
        ("boolean", "'maybe'", "str", ()),
        ("boolean", "2", "int", ()),
        ("integer", "' 80 '", "str", ("int_from_string",)),
        ("integer", "'80.5'", "str", ()),
        ("number", "'80.5'", "str", ("float_from_string",)),
        ("array", "'ada@example.com'", "str", ("wrap_in_list",)),
        ("array", "'[1, 2]'", "str", ("json_from_string",)),
        ("array", "{'a': 1}", "dict", ()),
        ("array", "str, 15 characters", "str", ()),
        ("object", '\'{"a": 1…', "str", ("json_from_string",)),
        ("pattern ^[A-Z]{3}$", "'nok'", "str", ("fold_case",)),
        ("pattern ^[A-Z]{3}$", "'NOKI'", "str", ()),
        ("pattern ^(a+)+$", "'aaaa'", "str", ()),
        ("integer", None, None, ()),
        ("integer", "'" + "8" * 3_000 + "'", "str", ()),
    ],
)
def test_remedies_read_off_texts(
    expected: str, received: str | None, kind: str | None, remedies: tuple[str, ...]
) -> None:
    """What was expected and received tell the remedy where they leave no doubt; no pattern runs."""
    assert inferred_remedies(expected, received, kind) == remedies


@pytest.mark.parametrize(
    "remedy",
    [
        "bool_from_string", "int_from_string", "float_from_string", "json_from_string",
        "wrap_in_list", "strip", "fold_case", "close_choice", "alias", "clamp",
        "date_from_string", "default", "all_at_once", "reword", "expose", "of_the_future",
    ],
)  # fmt: skip
def test_names_of_the_data_are_no_code(remedy: str) -> None:
    """A field or tool with a hostile name appears in words only, never in the code to paste."""
    said = advice(FixKey("t'); import os #", 'x"); import os #', remedy, "y'); import os"))
    assert "import os" not in said.code
    assert said.title
