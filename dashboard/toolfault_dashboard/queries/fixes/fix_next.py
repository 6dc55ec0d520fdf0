"""Fix next: the failures of a scope as evidence, ranked by the calls a fix would save."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from sqlalchemy import Connection

from toolfault_collector.clock import DAY_US
from toolfault_dashboard.analysis.fixes.fixes import (
    Fix,
    Outline,
    Since,
    Tallied,
    fix_of,
    outline,
    saved_since,
)
from toolfault_dashboard.analysis.fixes.opportunities import FixKey, Opportunity
from toolfault_dashboard.analysis.fixes.opportunity_arrays import ByFix
from toolfault_dashboard.analysis.fixes.remedies import advice
from toolfault_dashboard.analysis.fixes.wordings import gains
from toolfault_dashboard.queries.chains.round_trips import (
    combined_select,
    remember_combinations,
)
from toolfault_dashboard.queries.comparisons.changes import changes
from toolfault_dashboard.queries.comparisons.effects import cohorts_of_change
from toolfault_dashboard.queries.counting.memoise import answered
from toolfault_dashboard.queries.counting.sampling_weights import sampling
from toolfault_dashboard.queries.counting.segments import is_asked_at_once
from toolfault_dashboard.queries.counting.together import Question, ask_together
from toolfault_dashboard.queries.failures.kinds import ignored_kinds, states_of
from toolfault_dashboard.queries.figures.summaries import chain_totals
from toolfault_dashboard.queries.figures.totals import call_questions, calls_by, remember_calls
from toolfault_dashboard.queries.fixes.fix_evidence import MOST_FAILURES, Evidence, evidence
from toolfault_dashboard.queries.fixes.messages import texts_of
from toolfault_dashboard.queries.periods import first_call
from toolfault_dashboard.queries.rows import ChangeRow
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.visibility import sees
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Clause, Moment, Pattern, Query, QueryError

__all__ = [
    "FEW",
    "FixList",
    "FixRow",
    "costliest_fixes",
    "fix_next",
    "one_fix",
    "operations",
    "saved_by_fixes_since",
]

WEEK: Final = 7 * DAY_US
FEW: Final = 3
"""Failures below which something says too little to stand before what was seen more often."""

_URGENT_FIRST: Final = ("regressed", "new", "open", "acknowledged", "fixed", "ignored")


@dataclass(frozen=True, slots=True)
class FixRow:
    """One thing to mend, with what it would save and where the evidence is.

    A failure has its cost in one row. Where another message would help it stands in the row of that
    message too, which has no cost: both rows say so.

    What an ``open`` row saves is unknown, and a ``reword`` row has its cost in other rows: None.
    """

    number: int  # its place in the whole list, from 1
    tool: str
    field: str  # "" where the tool itself is meant
    remedy: str
    detail: str
    title: str  # what to do, one sentence
    code: str  # how, as code for the SDK
    saved: float | None  # calls that the remedy would have saved, in the window
    saved_per_week: float | None
    saved_per_week_low: float | None
    saved_per_week_high: float | None
    cost: float | None  # calls spent after its failures, each of which belongs to one failure
    cost_per_week: float | None
    cost_per_week_low: float | None
    cost_per_week_high: float | None
    round_trips: int | None  # among these; each belongs to the latest failure before it
    abandoned: int | None  # chains that were abandoned after one of its failures, their last
    failures: int  # avoided in the window; where ``estimated``, those after which it was read
    chains: int
    estimated: bool  # assumes something beyond the counts (a better wording)
    query: str  # clauses that lead to the failures behind it
    states: str  # of the kinds behind it: "1 regressed, 2 open"
    last_at: int | None
    mended_by: str | None  # label of a change of the tool after which it did not come back
    changed_by: str | None  # label of the latest change of the tool in the window
    saved_since: float | None  # calls spared since then, against going on as before
    saved_since_low: float | None
    saved_since_high: float | None
    message: str  # what the model was told most often; "" unless each failure told it a text
    texts: int  # how many texts that were
    shared: int  # of its failures, those that stand in another row too
    shared_with: tuple[int, ...]  # the numbers of those rows, most of these failures first

    @property
    def key(self) -> FixKey:
        """What would be changed."""
        return FixKey(self.tool, self.field, self.remedy, self.detail)

    @property
    def calls(self) -> float:
        """What it is ranked by: calls saved, or spent where no remedy is known."""
        return (self.cost if self.saved is None else self.saved) or 0.0


@dataclass(frozen=True, slots=True)
class FixList:
    """What to fix next, most calls first; what is mended already comes last.

    These are calls saved or, where no remedy is known, spent.

    Failures of kinds that are ignored are in no row. A query that asks for states itself gets what
    it asks for.
    """

    rows: tuple[FixRow, ...]
    cost: float  # calls spent after all failures that were looked at, ignored ones too
    weeks: float | None
    failures: int  # looked at
    complete: bool  # all failures of the scope were looked at, else its newest
    unweighed: bool = False  # calls were sampled: figures are of rows, not of what they stand for
    looked_from: int | None = None  # where not all were: since when, and so are the weeks
    ignored_kinds: int = 0  # kinds left out since they are ignored
    ignored_failures: int = 0  # their failures
    ignored_cost: float = 0.0  # calls spent after these
    total: int = 0  # rows of the whole list
    most: float = 0.0  # ``calls`` of the first row of the whole list


_TOGETHER: Final = 20  # windows that one statement counts: SQLite takes a union of 500 selects


def fix_next(
    conn: Connection,
    scope: Scope,
    *,
    limit: int | None = None,
    skip: int = 0,
    most: int = MOST_FAILURES,
) -> FixList:
    """Rank what to mend by the calls it would have saved, then by the chains given up.

    Where no remedy is known the calls spent count instead. What has fewer than `FEW` failures comes
    after what has more: one chain that was long by chance says little about the next one.

    Args:
        conn: Open connection.
        scope: Which failures.
        limit: Most rows; None for all.
        skip: How many to leave out before them.
        most: How many failures are looked at, the newest.

    Raises:
        QueryError: The reader may not see which remedies would have helped.
    """
    if not sees(scope, "near_miss"):
        raise QueryError("Your role may not see what would have been accepted.")
    changed = _changed(conn, scope)
    ignored = ignored_kinds(conn, scope)
    found = evidence(conn, scope, ignored, most=most)
    if not found.complete and found.first_at is not None:
        # What was not looked at must not make a week look calm: the window is the shorter one.
        scope = _from(scope, found.first_at)
        changed = _changed(conn, scope)
    weeks = _weeks(conn, scope, found)
    since = _savings(conn, scope, found.fixes, changed)
    reworded, under = _rewordings(conn, found)
    causes = _by_cause(found.fixes)
    # Ranked by what costs little to know: of thousands of fixes a reader sees fifty.
    outlines = {
        **{
            key: reduce(Outline.and_, (found.fixes[each] for each in own))
            for key, own in causes.items()
        },
        **{key: outline(group) for key, group in reworded.items()},
    }
    ranked = sorted(outlines, key=lambda key: _rank(key, outlines[key], changed))
    numbers = {key: number for number, key in enumerate(ranked, 1)}
    shared = _shared(under, causes, numbers)
    fixes = [
        fix_of(key, reworded.get(key) or [*map(found.fixes.tally, causes[key])], weeks=weeks)
        for key in ranked[skip:][:limit]
    ]
    states = states_of(conn, scope, frozenset().union(*(fix.kinds for fix in fixes)))
    said = {each for fix in fixes for each in fix.said if each is not None}
    texts = texts_of(conn, said)
    return FixList(
        rows=tuple(
            _row(
                fix,
                states,
                changed,
                since.get(fix.key),
                texts,
                number=numbers[fix.key],
                shared=shared[fix.key],
                estimated=fix.key in reworded,
            )
            for fix in fixes
        ),
        cost=found.ignored.cost + sum(each.cost for each in outlines.values()),
        weeks=weeks,
        failures=found.failures,
        complete=found.complete,
        looked_from=None if found.complete else found.first_at,
        unweighed=sampling(conn, scope.project_id).calls,
        ignored_kinds=len(found.ignored.kinds),
        ignored_failures=found.ignored.failures,
        ignored_cost=found.ignored.cost,
        total=len(ranked),
        most=outlines[ranked[0]].saved if ranked else 0.0,
    )


def costliest_fixes(conn: Connection, scope: Scope, *, limit: int) -> tuple[FixRow, ...]:
    """Return what cost most in the scope, as `fix_next` ranks it, by four statements at most.

    Without what takes further questions: rates per week, better wordings, states of kinds, and what
    changes of the tool have mended.

    Raises:
        QueryError: The reader may not see which remedies would have helped.
    """
    if not sees(scope, "near_miss"):
        raise QueryError("Your role may not see what would have been accepted.")
    found = evidence(conn, scope, ignored_kinds(conn, scope)).fixes
    ranked = sorted(found, key=lambda key: _rank(key, found[key], {}))
    fixes = [fix_of(key, [found.tally(key)], weeks=None) for key in ranked[:limit]]
    return tuple(
        _row(fix, {}, {}, None, {}, number=number, shared=Counter())
        for number, fix in enumerate(fixes, 1)
    )


def one_fix(
    conn: Connection, scope: Scope, *, tool: str, field: str, remedy: str
) -> tuple[Fix, float] | None:
    """Return one fix of the scope and the weeks that it rests on; None where there is no such fix.

    What differs in its details alone, as the names that a model invents for one argument do, is
    one fix here.

    Args:
        conn: Open connection.
        scope: Where to look; only its calls of *tool* are looked at.
        tool: The tool to mend.
        field: The pattern of its argument.
        remedy: What would have accepted the value.

    Raises:
        QueryError: The reader may not see which remedies would have helped.
    """
    if not sees(scope, "near_miss"):
        raise QueryError("Your role may not see what would have been accepted.")
    own = scope.narrowed(str(Clause("tool", (Pattern((tool,)),))))
    ignored = ignored_kinds(conn, own)
    found = evidence(conn, own, ignored)
    if not found.complete and found.first_at is not None:
        own = _from(own, found.first_at)
    wanted = (tool, field, remedy)
    group = [found.fixes.tally(key) for key in found.fixes if key[:3] == wanted]
    if remedy == "reword":
        reworded, _ = _rewordings(conn, found)
        group += [each for key, parts in reworded.items() if key[:3] == wanted for each in parts]
    weeks = _weeks(conn, own, found)
    if not group or weeks is None:
        return None
    return fix_of(FixKey(*wanted), group, weeks=weeks), weeks


def saved_by_fixes_since(
    conn: Connection, scope: Scope, tool: str, moment: int
) -> Mapping[tuple[str, str], Since]:
    """Return what the fixes of *tool* have saved since it was changed, by field and remedy.

    Args:
        conn: Open connection.
        scope: How far the time before and after goes.
        tool: The tool.
        moment: When it was changed, microseconds.

    Raises:
        QueryError: The reader may not see which remedies would have helped.
    """
    if not sees(scope, "near_miss"):
        raise QueryError("Your role may not see what would have been accepted.")
    own = scope.narrowed(str(Clause("tool", (Pattern((tool,)),))))
    groups: defaultdict[tuple[str, str], list[Opportunity]] = defaultdict(list)
    found = evidence(conn, own, ignored_kinds(conn, own)).fixes
    for key in found:
        if key.tool == tool:
            groups[key.field, key.remedy] += found.opportunities(key)
    cohorts = cohorts_of_change(own, ChangeRow("", moment, "", tool, "manual", ""))
    counted = (operations(conn, cohorts[0]), operations(conn, cohorts[1]))
    sums = {key: saved_since(group, moment, counted) for key, group in groups.items()}
    return {key: since for key, since in sums.items() if since is not None}


def _from(scope: Scope, at: int) -> Scope:
    return replace(scope, query=scope.query.and_(Query((Clause("since", (Moment(at=at),)),))))


def _weeks(conn: Connection, scope: Scope, found: Evidence) -> float | None:
    """Return the length of the window as far as the project has data of it; None below a day.

    A project that began two days ago has two days of a window of two weeks. Less than a day says
    nothing of a week: the same hour does not come again 168 times. Nor do failures without times of
    which others were left out.
    """
    if not found.complete and found.first_at is None:
        return None
    since, until = window(scope)
    began = [at for at in (found.first_at, first_call(conn, scope)) if at is not None]
    if not began:
        return None
    begin = max(min(began), since if since is not None else 0)
    end = min(until if until is not None else scope.now, scope.now)
    return (end - begin) / WEEK if end - begin >= DAY_US else None


def _rank(
    key: FixKey, found: Outline, changed: Mapping[str, ChangeRow]
) -> tuple[bool, bool, float, int, int, FixKey]:
    mended = _mended_by(key, found.last_at, changed) is not None
    rare = found.failures < FEW
    return mended, rare, -found.saved, -found.abandoned, -found.failures, key


def _rewordings(
    conn: Connection, found: Evidence
) -> tuple[dict[FixKey, list[Tallied]], dict[FixKey, Counter[FixKey]]]:
    """Messages after which the model fails again more often than after the others.

    What a better wording would save is estimated: its failures would have been fixed by the next
    call as often as all other failures that the model can fix.

    Returns:
        The fixes, and how many failures of each stand under which other fix, which has their cost.
    """
    # Rows, not what they stand for: a fix is about what was sent.
    of_rows = gains(list(found.wordings.values()))
    better = {
        wording: gain
        for wording, gain in zip(found.wordings, of_rows, strict=True)
        if gain is not None
    }
    texts = texts_of(conn, (said for *_, said in better))
    reworded: defaultdict[FixKey, list[Tallied]] = defaultdict(list)
    under: defaultdict[FixKey, Counter[FixKey]] = defaultdict(Counter)
    for wording, those, keys in found.fixes.answered(better.keys()):
        (tool, _, said), gain = wording, better[wording]
        key = FixKey(tool, "", "reword", texts[said])
        under[key] += keys
        reworded[key].append(replace(those, factor=gain.value, error=gain.error))
    return reworded, under


def _shared(
    under: Mapping[FixKey, Counter[FixKey]],
    causes: Mapping[FixKey, Sequence[FixKey]],
    numbers: Mapping[FixKey, int],
) -> defaultdict[FixKey, Counter[int]]:
    """Return how many failures the row of a fix has in common with which other row.

    Args:
        under: How many failures of each better wording stand under which fix.
        causes: The fixes that are one row, see `_by_cause`.
        numbers: The number of each row.
    """
    rows = {each: key for key, own in causes.items() for each in own}
    found: defaultdict[FixKey, Counter[int]] = defaultdict(Counter)
    for key, keys in under.items():
        for each, failures in keys.items():
            found[key][numbers[rows[each]]] += failures
            found[rows[each]][numbers[key]] += failures
    return found


def _by_cause(found: ByFix) -> dict[FixKey, list[FixKey]]:
    """Put tools together that fail with one code and one and the same text: that is one cause.

    Every failure of each has the text: the line speaks of no failure that says something else.
    Editing and writing a file that was not read are two tools and one thing to mend.
    """
    alike: defaultdict[tuple[str, int], list[FixKey]] = defaultdict(list)
    for key, each in found.items():
        if key.remedy == "open" and not key.field and each.message is not None:
            alike[key.detail, each.message].append(key)
    together = {key: [key] for key in found}
    for keys in alike.values():
        if len(keys) > 1:
            first, *others = sorted(keys, key=lambda key: (-found[key].saved, key))
            for key in keys:
                del together[key]
            together[first._replace(others=tuple(key.tool for key in others))] = keys
    return together


def _changed(conn: Connection, scope: Scope) -> dict[str, ChangeRow]:
    """Return the latest change of every tool that has one."""
    found: dict[str, ChangeRow] = {}
    for each in changes(conn, scope):
        if each.tool is not None:
            found.setdefault(each.tool, each)
    return found


def _savings(
    conn: Connection,
    scope: Scope,
    found: ByFix,
    changed: Mapping[str, ChangeRow],
) -> dict[FixKey, Since]:
    """Return what the fixes of changed tools have saved since."""
    tools = {key.tool for key in found} & changed.keys()
    cohorts = {tool: cohorts_of_change(scope, changed[tool]) for tool in sorted(tools)}
    _read_operations(conn, [cohort for both in cohorts.values() for cohort in both])
    counted = {
        tool: [operations(conn, cohort) for cohort in both] for tool, both in cohorts.items()
    }
    sums = {
        key: saved_since(
            found.opportunities(key),
            changed[key.tool].occurred_at,
            (counted[key.tool][0], counted[key.tool][1]),
        )
        for key in found
        if key.tool in changed
    }
    return {key: since for key, since in sums.items() if since is not None}


def _read_operations(conn: Connection, scopes: Sequence[Scope]) -> None:
    """Read with one statement for `_TOGETHER` of *scopes* what `operations` asks of each of them.

    Of a large window nothing is read ahead: most of it may be known.
    """
    few = [
        scope
        for scope in scopes
        if is_asked_at_once(conn, scope) and answered(conn, calls_by, scope, "tool") is None
    ]
    for begin in range(0, len(few), _TOGETHER):
        asked = few[begin : begin + _TOGETHER]
        calls = [call_questions(conn, scope) for scope in asked]
        chains = [combined_select(conn, scope, ("tool",)) for scope in asked]
        of_each = [each for own in calls for each in own]
        answers = ask_together(conn, [*of_each, *(Question(each, 2) for each in chains)])
        of_calls, of_chains = iter(answers[: -len(asked)]), answers[-len(asked) :]
        for scope, own, combined, rows in zip(asked, calls, chains, of_chains, strict=True):
            remember_calls(conn, scope, [row for _ in own for row in next(of_calls)])
            remember_combinations(conn, scope, ("tool",), combined, rows)


def operations(conn: Connection, scope: Scope) -> int:
    """Return the calls that are no retries: a fix does away with retries, not with these."""
    return (calls_by(conn, scope, "tool").total() - chain_totals(conn, scope).round_trips).whole


def _row(
    fix: Fix,
    states: Mapping[int, str],
    changed: Mapping[str, ChangeRow],
    since: Since | None,
    texts: Mapping[int, str],
    *,
    number: int,
    shared: Counter[int],
    estimated: bool = False,
) -> FixRow:
    key = fix.key
    messages = sorted(
        (-number, texts[each])
        for each, number in fix.said.items()
        if each is not None and each in texts
    )
    is_sure = None not in fix.said
    said = advice(key)
    change = None if key.others else changed.get(key.tool)
    is_open = key.remedy == "open"
    return FixRow(
        number=number,
        tool=key.tool,
        field=key.field,
        remedy=key.remedy,
        detail=key.detail,
        title=said.title,
        code=said.code,
        saved=None if is_open else fix.saved,
        saved_per_week=None if is_open else fix.per_week,
        saved_per_week_low=None if is_open else fix.low,
        saved_per_week_high=None if is_open else fix.high,
        cost=None if estimated else fix.cost,
        cost_per_week=None if estimated else fix.cost_per_week,
        cost_per_week_low=None if estimated else fix.cost_low,
        cost_per_week_high=None if estimated else fix.cost_high,
        round_trips=None if estimated else fix.round_trips,
        abandoned=None if estimated else fix.abandoned,
        failures=fix.failures,
        chains=fix.chains,
        estimated=estimated,
        query=_evidence(key),
        states=_in_words(states[kind] for kind in fix.kinds if kind in states),
        last_at=fix.last_at,
        mended_by=_mended_by(key, fix.last_at, changed),
        changed_by=None if change is None else change.label,
        saved_since=since.saved if since else None,
        saved_since_low=since.low if since else None,
        saved_since_high=since.high if since else None,
        message=messages[0][1] if messages and is_sure else "",
        texts=len(messages) if is_sure else 0,
        shared=shared.total(),
        shared_with=tuple(sorted(shared, key=lambda each: (-shared[each], each))),
    )


def _in_words(states: Iterable[str]) -> str:
    """Write states of kinds with their numbers: ``1 regressed, 2 open``."""
    counted = Counter(states)
    return ", ".join(f"{counted[state]} {state}" for state in _URGENT_FIRST if counted[state])


def _mended_by(key: FixKey, last_at: int | None, changed: Mapping[str, ChangeRow]) -> str | None:
    """Return the change of a tool after which a fix's failures did not come back, if there is."""
    change = None if key.others else changed.get(key.tool)  # a change is of one tool
    gone = change is not None and last_at is not None and last_at < change.occurred_at
    return change.label if gone and change is not None else None


def _evidence(key: FixKey) -> str:
    clauses = [("tool", tuple(Pattern((tool,)) for tool in (key.tool, *key.others)))]
    if key.remedy == "alias":
        # Beside the argument; positions in a list are any.
        *around, last = key.field.rpartition(".")[0].split(".*")
        beside = Pattern((*around, f"{last}.{key.detail}" if "." in key.field else key.detail))
        clauses.append(("field", (beside,)))
    clauses += [(name, (Pattern((value,)),)) for name, value in _told_apart_by(key)]
    return " ".join(str(Clause(*clause)) for clause in clauses)


def _told_apart_by(key: FixKey) -> list[tuple[str, str]]:
    """Return what tells the failures behind a fix from others of its tool: keys with a value."""
    if key.remedy == "expose":
        return [("own_code", "not_available")]
    if key.remedy == "reword":
        return [("message", key.detail)]
    if key.remedy == "all_at_once":
        return [("has", "issue"), ("chain", "recovered")]
    if key.remedy == "alias":
        return [("issue", "unknown_field")]
    if key.remedy == "open":
        both = (("own_code", key.detail), ("field_pattern", key.field))
        return [clause for clause in both if clause[1]]
    if key.remedy in ("default", "describe"):
        return [("field_pattern", key.field), ("issue", "missing_field")]
    # Without the remedy: a sender that names none is believed by what it received.
    return [("field_pattern", key.field)]
