"""Small immutable records with named fields.

``typing.NamedTuple`` is what type checkers see. Importing ``typing`` takes 13 ms of the 30 that the
whole SDK has for import and ``init``, so at run time the class is made by ``collections``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as Record
else:
    from collections import namedtuple

    class _Maker(type):
        """Makes a named tuple of a class body with annotated fields."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, object]) -> type:
            fields = list(body.get("__annotations__", ()))
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            for member, value in body.items():
                if member not in fields and member not in _OWN:
                    setattr(made, member, value)
            return made

    _OWN = ("__annotations__", "__module__", "__qualname__", "__static_attributes__")
    Record = type.__new__(_Maker, "Record", (), {})

__all__ = ["Record"]
