"""Validation by a JSON schema, which is the work of the package ``jsonschema``.

The package is an extra of the SDK and the only one it imports: this module is loaded by tools that
are declared with ``parameters=``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jsonschema
from jsonschema.validators import extend, validator_for
from referencing import Registry

from toolfault.errors import ConfigError
from toolfault.tools._checks import Findings, Loc, Plan
from toolfault.tools._mending import Complaint, Outcome, mended
from toolfault.tools._signature import Parameters


def validator_of(document: Any) -> Any:
    """Return the class of jsonschema that validates by ``document``, a schema of any draft.

    Raises:
        ConfigError: It is no valid JSON schema.
    """
    if not isinstance(document, Mapping):
        raise ConfigError(f"parameters= takes a JSON schema as a dict, not {document!r}")
    kind = validator_for(document, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(document)
    except jsonschema.SchemaError as error:
        raise ConfigError(
            f"parameters= is no valid JSON schema: {error.json_path}: {error.message}"
        ) from None
    checker = kind.TYPE_CHECKER
    return extend(
        kind,
        type_checker=checker.redefine(
            "number",
            lambda _, value: (
                checker.is_type(value, "number")
                # JSON has no NaN and no infinities, Python's reader and floats do.
                and not (isinstance(value, float) and not math.isfinite(value))
            ),
        ),
    )


class SchemaPlan(Plan):
    """Validation by the tool's own JSON schema.

    A parameter that the function needs is required whatever the schema says, and one that it
    cannot take is refused where the schema does not say more: the call could not be made.
    """

    def __init__(self, document: Mapping[str, Any], parameters: Parameters) -> None:
        self._document = document
        required = [*document.get("required", ()), *parameters.required]
        # jsonschema reports keyword by keyword: what is missing comes first.
        whole: dict[str, Any] = {"type": "object", "required": list(dict.fromkeys(required))}
        whole.update((key, part) for key, part in document.items() if key != "required")
        names: dict[str, Any] = {name: {} for name in parameters.annotations}
        whole["properties"] = {**names, **document.get("properties", {})}
        if not parameters.takes_extra:
            whole.setdefault("additionalProperties", False)
        kind = validator_of(document)
        # An empty registry fetches nothing: a "$ref" reaches inside the schema only.
        self._validator = kind(whole, registry=Registry(), format_checker=kind.FORMAT_CHECKER)
        self.optional = not required

    def prepare(self, arguments: dict[Any, Any], findings: Findings) -> dict[str, Any]:
        """Return the arguments, repaired where that is asked for.

        Raises:
            jsonschema.ValidationError: They are wrong; its context has every error.
        """
        sent: dict[str, Any] = mended(arguments, self._attempt, (), findings)[0]
        return sent

    def _attempt(self, arguments: Any) -> Outcome:
        try:
            errors = list(self._validator.iter_errors(arguments))
        except RecursionError:
            errors = [jsonschema.ValidationError("nested too deeply", validator="depth", path=())]
        if not errors:
            return Outcome(arguments)
        error = jsonschema.ValidationError(f"{len(errors)} errors", context=errors)
        return Outcome(None, error, tuple(_complaints(errors)))

    def schema(self) -> dict[str, Any]:
        """Return the schema as the tool gave it."""
        return dict(self._document)


def _complaints(errors: Iterable[Any]) -> Iterator[Complaint]:
    """Yield where another type is wanted, in alternatives too."""
    for error in errors:
        if error.validator == "type":
            loc: Loc = tuple(error.absolute_path)
            kinds = error.validator_value
            yield from ((loc, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))
        yield from _complaints(error.context or ())
