"""What could be mended, once more and as naively as can be: the rules of docs/statistics.md.

Plain Python over rows: failures with their issues, and the calls of their chains. Nothing of the
product is used.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scipy.stats import fisher_exact
from tests.dashboard.naive import beside

__all__ = ["Found", "Key", "fixes", "ranked", "rewordings"]

Key = tuple[str, str, str, str]
"""Tool, field, remedy and detail."""

Row = Mapping[str, Any]


@dataclass
class Found:
    """What one fix would have done."""

    failures: int = 0
    chains: set[str] = field(default_factory=set)
    saved: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    errors: float = 0.0  # of what each failure would have saved, added up
    costs: Counter[str] = field(default_factory=Counter)  # calls spent that belong to its failures
    round_trips: int = 0  # those after its failures, each after the latest before it
    abandoned: set[str] = field(default_factory=set)
    times: list[Any] = field(default_factory=list)

    @property
    def total(self) -> float:
        """Calls saved in the window."""
        return sum(self.saved.values())

    @property
    def cost(self) -> int:
        """Calls spent in the window."""
        return self.costs.total()

    def count(self, row: Row, saved: float) -> None:
        """Take in one failure."""
        self.failures += 1
        self.saved[row["conversation"]] += saved
        if row["chain_id"]:
            self.chains.add(row["chain_id"])
        if row["at"] is not None:
            self.times.append(row["at"])


def fixes(failures: Iterable[Row], members: Mapping[str, Sequence[Row]]) -> dict[Key, Found]:
    """Return each fix with what it covers.

    Args:
        failures: tool, code, reason, conversation, chain_id, attempt, at, outcome, issues and
            others: the calls of other tools of the chain that the failure opened.
        members: All calls of each chain, in order.
    """
    found: defaultdict[Key, Found] = defaultdict(Found)
    chains: defaultdict[str, list[Row]] = defaultdict(list)
    for row in failures:
        if row["chain_id"]:
            chains[row["chain_id"]].append(row)
        else:
            found[covering(row) or _open(row)].count(row, 0.0)
    for chain_id, own in chains.items():
        calls = list(members[chain_id])
        trips = {
            call["attempt"]: place > 0 and not any(beside(call, each) for each in calls[:place])
            for place, call in enumerate(calls)
        }
        seen: set[Key] = set()
        named: set[str] = set()
        first = min(row["attempt"] for row in own)
        serial = next(row for row in own if row["attempt"] == first)["issues"]
        in_order = sorted(own, key=lambda each: each["attempt"])
        left = [
            sum(1 for attempt, trip in trips.items() if trip and attempt > row["attempt"])
            for row in in_order
        ]
        for row, after, later in zip(in_order, left, [*left[1:], 0], strict=True):
            key = covering(row)
            patterns = {issue["field_pattern"] for issue in row["issues"]}
            spent = after - later + row["others"]
            if key is not None:
                own_key = key
                found[key].count(row, 0.0 if key in seen else after + row["others"])
                seen.add(key)
            elif (
                serial
                and row["attempt"] > first
                and trips[row["attempt"]]
                and patterns
                and not patterns & named
            ):
                own_key = (row["tool"], "", "all_at_once", "")
                found[own_key].count(row, 1.0)
            else:
                own_key = _open(row)
                found[own_key].count(row, spent)
            found[own_key].costs[row["conversation"]] += spent
            found[own_key].round_trips += after - later
            if row["outcome"] == "abandoned" and row is in_order[-1]:
                found[own_key].abandoned.add(chain_id)
            named |= patterns
    return dict(found)


def covering(row: Row) -> Key | None:
    """Return the one fix that would have let the call succeed."""
    tool, issues = row["tool"], row["issues"]
    if row["code"] == "not_available" and row["reason"] in (None, "not_registered"):
        return tool, "", "expose", ""
    if len({issue["field_pattern"] for issue in issues}) == 1:
        for issue in issues:
            for remedy in issue["near_miss"] or _read(issue):
                if remedy != "alias":
                    return tool, issue["field_pattern"], remedy, ""
    missing = [issue["field_pattern"] for issue in issues if issue["code"] == "missing_field"]
    unknown = [issue["field"] for issue in issues if issue["code"] == "unknown_field"]
    if len(missing) == len(unknown) == 1 and len(issues) == 2:
        (meant,) = (issue["field"] for issue in issues if issue["code"] == "missing_field")
        *around, wanted = meant.split(".")
        *there, written = unknown[0].split(".")
        if around == there and _alike(wanted, written):
            return tool, missing[0], "alias", written
    if len(missing) == len(issues) == 1:
        words = (issues[0]["expected"] or "").lower()
        usual = re.search(r"\b(int|integer|float|number|bool|boolean)\b", words)
        return tool, missing[0], "default" if usual else "describe", ""
    return None


def _open(row: Row) -> Key:
    """Return what to look at where no fix is known."""
    patterns = sorted({issue["field_pattern"] for issue in row["issues"]})
    return row["tool"], patterns[0] if len(patterns) == 1 else "", "open", row["code"] or ""


def _alike(wanted: str, written: str) -> bool:
    a, b = (name.replace("-", "_").lower() for name in (wanted, written))
    words, others = set(a.split("_")), set(b.split("_"))
    if words <= others or others <= words:
        return True
    common = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            common[i][j] = (
                common[i - 1][j - 1] + 1 if x == y else max(common[i - 1][j], common[i][j - 1])
            )
    return 200 * common[-1][-1] / (len(a) + len(b)) >= 75


def _read(issue: Row) -> list[str]:
    """What was expected and received leaves no doubt about."""
    expected, received = issue["expected"], issue["received"]
    if not expected or not received or len(received) > 2_000:
        return []
    text = None
    if received[0] in "'\"":
        try:
            text = ast.literal_eval(received)
        except (ValueError, SyntaxError):
            text = received[1:]
    if expected == "array" and issue["received_type"] not in ("list", "tuple", "NoneType", "dict"):
        as_json = text is not None and text.lstrip().startswith("[")
        return ["json_from_string" if as_json else "wrap_in_list"]
    if text is None:
        return []
    if expected == "boolean":
        words = ("true", "false", "yes", "no", "on", "off", "1", "0")
        return ["bool_from_string"] if text.strip().lower() in words else []
    if expected == "integer":
        return ["int_from_string"] if re.fullmatch(r"\s*[+-]?\d{1,18}\s*", text) else []
    if expected == "number":
        try:
            float(text)
        except ValueError:
            return []
        return ["float_from_string"] if re.search(r"\d", text) and "_" not in text else []
    if expected == "object":
        return ["json_from_string"] if text.lstrip().startswith("{") else []
    cased = re.fullmatch(r"pattern (\^\[(A-Z|a-z)\](\{\d+(,\d+)?\}|\+)\$)", expected)
    if cased and text.isascii() and text.isalpha():
        folded = text.upper() if cased[2] == "A-Z" else text.lower()
        return ["fold_case"] if folded != text and re.fullmatch(cased[1], folded) else []
    return []


def rewordings(failures: Iterable[Row], members: Mapping[str, Sequence[Row]]) -> dict[Key, Found]:
    """Return the messages after which less succeeds than after all others, beyond chance.

    Args:
        failures: Those above, with message_digest and message_text; parameter failures only.
        members: All calls of each chain, in order.
    """
    read: defaultdict[tuple[str, str, str, str], list[tuple[Row, bool]]] = defaultdict(list)
    told: Counter[tuple[str, str, str, str]] = Counter()
    for row in failures:
        if row["message_digest"] is None or not row["chain_id"]:
            continue
        calls = {call["attempt"]: call for call in members[row["chain_id"]]}
        following = calls.get(row["attempt"] + 1)
        wording = (row["tool"], row["code"], row["message_digest"], row["message_text"])
        told[wording] += 1
        if following is not None and not beside(following, calls[row["attempt"]]):
            read[wording].append((row, bool(following["success"])))
    answered = sum(map(len, read.values()))
    fixed = sum(success for own in read.values() for _, success in own)
    tested = []
    for wording, own in read.items():
        tool, _, _, text = wording
        mended, others = sum(success for _, success in own), answered - len(own)
        if len(own) < 10 or others < 10:
            continue
        usual = (fixed - mended) / others
        table = [[mended, len(own) - mended], [fixed - mended, others - fixed + mended]]
        p = float(fisher_exact(table, alternative="less").pvalue)
        shares = [
            ((x + 1) / (n + 2), n + 2) for x, n in ((mended, len(own)), (fixed - mended, others))
        ]
        own_variance, their_variance = (share * (1 - share) / n for share, n in shares)
        more, goes_on = usual - mended / len(own), others / (told.total() - told[wording])
        follow = goes_on / (1 - goes_on * (1 - usual))  # calls after another message
        slope = follow - more * follow * follow
        error = (own_variance * follow**2 + their_variance * slope**2) ** 0.5
        tested.append((p, tool, text, own, more * follow, error))
    found: defaultdict[Key, Found] = defaultdict(Found)
    tested.sort(key=lambda each: each[0])
    for rank, (p, tool, text, own, gain, error) in enumerate(tested):
        if p * (len(tested) - rank) > 0.05:
            break
        for row, _ in own:
            found[tool, "", "reword", text].count(row, gain)
            found[tool, "", "reword", text].errors += error
    return dict(found)


def ranked(found: Mapping[Key, Found], changed: Mapping[str, Any]) -> list[Key]:
    """Return the fixes as they are listed: what a change has mended last, then what is rare.

    Rare is what has fewer than three failures. Within each, what saves most comes first.

    Args:
        found: The fixes.
        changed: When each tool was changed last, in the form of the times of the failures.
    """

    def place(key: Key) -> tuple[bool, bool, float, int, int, Key]:
        own = found[key]
        gone = key[0] in changed and bool(own.times) and max(own.times) < changed[key[0]]
        saved = -round(own.total, 9)
        return gone, own.failures < 3, saved, -len(own.abandoned), -own.failures, key

    return sorted(found, key=place)
