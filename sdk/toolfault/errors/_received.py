"""What the model really sent for one error: the raw arguments, walked along the error's path.

pydantic's own `input` is the value after coercion, and its path may contain labels of union
branches that are no keys of the arguments (`("x", "int")`). Both are told apart here without
ever comparing or converting an unknown object.
"""

from __future__ import annotations

from toolfault.errors import _types
from toolfault.errors._repr import safe_repr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Loc = tuple[str | int, ...]

__all__ = ["NOTHING", "raw_value"]


class _Nothing:
    """The mark for "no such value"; None is a value."""


NOTHING = _Nothing()
_LONGEST_PATH = 24
_SCALARS = (str, int, float, bool, type(None))


def raw_value(args: object, loc: Loc, seen: object, *, failed: Sequence[Loc] = ()) -> object:
    """The value of *args* that an error at *loc* is about.

    Args:
        args: The arguments as the model sent them.
        loc: The path of the error; may contain labels of union branches.
        seen: The value the validation library reports, or `NOTHING`.
        failed: The paths of all errors of this validation.

    Returns:
        What was sent at *loc*; the whole value of the field for an error inside a branch of a
        union without a tag; *seen* where the path does not start in *args* (an alias, say);
        `NOTHING` when there is no value at all.
    """
    if not loc or len(loc) > _LONGEST_PATH:
        return seen
    if loc[-1] == "[key]":
        return seen
    values = _walk(args, loc)
    if not values:
        return seen
    labels = () if seen is NOTHING else _labels(args, loc, seen)
    return _of_field(args, loc, labels, seen, failed) if labels else values[-1]


def _of_field(
    args: object, loc: Loc, labels: tuple[int, ...], seen: object, failed: Sequence[Loc]
) -> object:
    """The value of the field that an error inside a branch is about.

    Every branch of a union without a tag fails, and the field is whole; of a discriminated union
    one was chosen and no other was tried: the path goes on inside.
    """
    value = args
    for place, part in enumerate(loc):
        if place not in labels:
            value = _child(value, part)
            continue
        before = tuple(loc[:place])
        tried = {path[place] for path in failed if len(path) > place and path[:place] == before}
        if tried != {part}:
            return value if place else seen
    return value


def _walk(args: object, loc: Sequence[str | int]) -> list[object]:
    """The values along *loc*, as far as it names real keys and indexes."""
    values: list[object] = []
    current = args
    for part in loc:
        current = _child(current, part)
        if current is NOTHING:
            break
        values.append(current)
    return values


def _child(value: Any, part: str | int) -> object:
    if _types.is_a(value, dict):
        return dict.get(value, part, NOTHING)
    if type(part) is int:
        if _types.is_a(value, list):
            return list.__getitem__(value, part) if 0 <= part < list.__len__(value) else NOTHING
        if _types.is_a(value, tuple):
            return tuple.__getitem__(value, part) if 0 <= part < tuple.__len__(value) else NOTHING
    return NOTHING


def _labels(args: object, loc: Sequence[str | int], seen: object) -> tuple[int, ...]:
    """The positions of branch labels in *loc*; none when all parts are real.

    A part is a label when leaving it out leads to exactly the value the library reports.
    """
    walked = _last(_walk(args, loc), len(loc))
    if _same(walked, seen) or _coerced(walked, seen):
        return ()
    for skipped in _subsets(len(loc), first=1 if walked is not NOTHING else 0):
        kept = [part for place, part in enumerate(loc) if place not in skipped]
        found = _last(_walk(args, kept), len(kept)) if kept else args
        if found is not NOTHING and (_same(found, seen) or _coerced(found, seen)):
            return skipped
    return ()


def _subsets(length: int, *, first: int) -> list[tuple[int, ...]]:
    """Which one, two or three parts of a path to try as labels, the last single ones first."""
    places = range(first, length)
    one = [(a,) for a in reversed(places)]
    two = [(a, b) for a in places for b in range(a + 1, length)]
    three = [(a, b, c) for a, b in two for c in range(b + 1, length)]
    return [*one, *two, *three][:400]


def _last(values: list[object], length: int) -> object:
    return values[-1] if len(values) == length else NOTHING


def _same(a: object, b: object) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in _SCALARS:
        return bool(a == b)
    # Parsed twice, a container is equal and not the same; its representation is safe to compare.
    return type(a) in (dict, list) and safe_repr(a, 500) == safe_repr(b, 500)


def _coerced(raw: object, seen: object) -> bool:
    """Whether *seen* is what *raw* became by coercion: `"80"` and 80, `"True"` and True."""
    if type(raw) not in _SCALARS or type(seen) not in _SCALARS:
        return False
    return str(raw)[:64].strip().lower() == str(seen)[:64].lower()
