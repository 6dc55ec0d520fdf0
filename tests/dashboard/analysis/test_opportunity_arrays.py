"""Opportunities as arrays say what they say one by one, in parts and together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random

from toolfault_dashboard.analysis.fixes.fixes import Fix, Outline, add_up, fix_of, outline, tallies
from toolfault_dashboard.analysis.fixes.opportunities import FixKey, Opportunity
from toolfault_dashboard.analysis.fixes.opportunity_arrays import ByFix, Wording, arrays_of, joined
from toolfault_dashboard.analysis.fixes.wordings import Answers

RANDOM = Random(3)


def _opportunities(conversation: str) -> list[Opportunity]:
    """Opportunities of two chains, of which one was abandoned, and of a failure in no chain."""
    return [
        Opportunity(
            FixKey(f"t{RANDOM.randrange(2)}", "", RANDOM.choice(("open", "expose")), "code"),
            conversation,
            chain_id=None if chain is None else f"{conversation} {chain}",
            saved=float(RANDOM.randrange(4)),
            occurred_at=RANDOM.choice((None, 10**15 + RANDOM.randrange(10**12))),
            cost=float(RANDOM.randrange(300)),
            round_trips=RANDOM.randrange(3),
            abandoned=chain == 1,
            kind=RANDOM.choice((None, 1, 70_000)),
            said=RANDOM.choice((None, 5)),
            code=RANDOM.choice(("a", "b")),
            answer=0 if chain is None else RANDOM.randrange(3),
        )
        for chain in (None, 0, 1)
        for _ in range(RANDOM.randrange(4))
    ]


PARTS = [
    [each for talk in range(number) for each in _opportunities(f"{number}.{talk}")]
    for number in (3, 0, 40, 1)
]
WHOLE = [each for part in PARTS for each in part]


def _fixes(found: ByFix) -> list[Fix]:
    return add_up((each for key in found for each in found.opportunities(key)), weeks=2.0)


def test_arrays_of_parts_make_up_the_whole() -> None:
    """Every fix is the same, with its interval, from arrays that were joined."""
    found = ByFix(joined([arrays_of(part) for part in PARTS]))
    assert _fixes(found) == add_up(WHOLE, weeks=2.0)
    assert dict(found) == _outlines(WHOLE)
    again = joined([arrays_of(WHOLE[:0]), joined([arrays_of(WHOLE)])])
    assert dict(ByFix(again)) == dict(found)
    assert again.first_at == min(each.occurred_at for each in WHOLE if each.occurred_at is not None)


def _outlines(found: Iterable[Opportunity]) -> dict[FixKey, Outline]:
    said: dict[FixKey, set[int | None]] = {}
    for each in WHOLE:
        said.setdefault(each.key, set()).add(each.said)
    return {
        key: outline([each])._replace(message=said[key].pop() if len(said[key]) == 1 else None)
        for key, each in tallies(found).items()
    }


def test_ignored_kinds_are_set_apart() -> None:
    """Those of ignored kinds and the others are all, and neither knows of the other."""
    ignored, others = joined([arrays_of(part) for part in PARTS]).of_kinds({70_000, 2})
    assert (set(ignored.kinds), set(others.kinds)) == ({70_000}, {1})
    assert _fixes(ByFix(ignored)) == add_up((o for o in WHOLE if o.kind == 70_000), weeks=2.0)
    assert _fixes(ByFix(others)) == add_up((o for o in WHOLE if o.kind != 70_000), weeks=2.0)


def test_answers_are_counted_by_wording() -> None:
    """Of each tool, code and text: how many the next call fixed, how many had one, all of them."""
    found = joined([arrays_of(part) for part in PARTS])
    expected: dict[Wording, Answers] = {}
    for each in WHOLE:
        if each.said is not None and each.chain_id:
            wording = (each.key.tool, each.code, each.said)
            before = expected.get(wording, Answers(0, 0, 0))
            more = (each.answer == 2, each.answer > 0, 1)
            expected[wording] = Answers(*map(sum, zip(before, more, strict=True)))
    assert found.wordings() == expected
    answered = {
        wording: (own, under) for wording, own, under in ByFix(found).answered(expected.keys())
    }
    assert answered.keys() == expected.keys()
    for wording, (own, under) in answered.items():
        those = [
            each
            for each in WHOLE
            if each.answer and each.chain_id and (each.key.tool, each.code, each.said) == wording
        ]
        assert under == Counter(each.key for each in those)
        key = FixKey(wording[0], "", "reword")
        saving_one = [
            each._replace(key=key, saved=1.0, cost=0.0, round_trips=0, abandoned=False)
            for each in those
        ]
        assert fix_of(key, [own], weeks=2.0) == fix_of(key, [tallies(saving_one)[key]], weeks=2.0)
