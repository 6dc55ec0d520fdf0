"""Validation by a model of the host: pydantic, msgspec, dataclass, TypedDict.

No library is imported here: whoever passes a model has imported its library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, get_args

from toolfault.errors import PLAIN_TYPES, ConfigError, ToolError, wanted_types
from toolfault.errors import is_validation_error as is_known_error
from toolfault.errors._types import ABSENT
from toolfault.tools._checks import (
    ANYTHING,
    Check,
    FieldCheck,
    Findings,
    Hints,
    Loc,
    ObjectCheck,
    Plan,
    has_tag,
    hoisted,
)
from toolfault.tools._mending import Outcome, mended
from toolfault.tools._phantoms import Parents, declared
from toolfault.tools._signature import Parameters

_JSON_TYPES = frozenset({bool, int, float, list, dict, type(None)})
_MAX_WALK = 8  # levels of a validated model that are compared with what was sent


class Validation:
    """How values of one model class are validated.

    Attributes:
        validate: Returns the validated value or raises the library's validation error.
        document: Returns the JSON schema; ``ref_template`` says how parts of it are referred to.
        shape: Makes a check that says everything wrong, for a library that stops at the first
            error; None for any other.
    """

    __slots__ = ("_shape", "document", "shape", "validate")

    def __init__(
        self,
        validate: Callable[[Any], Any],
        document: Callable[..., dict[str, Any]],
        shape: Callable[[], Check] | None = None,
    ) -> None:
        self.validate = validate
        self.document = document
        self.shape = shape
        self._shape: Check | None = None

    def run(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Return the validated value; repairs go into ``findings``.

        Raises:
            Exception: The library's validation error. What a library that stops at the first
                error has left unsaid goes into ``findings`` instead.
        """
        if self.shape is not None:
            sent, validated = self._run_shaped(value, loc, findings)
        elif findings.coerce:
            sent, validated = mended(value, self._attempt, loc, findings)
        else:
            sent, validated = value, self.validate(value)
        if not _is_as_sent(sent, validated):
            findings.repairs.extend(conversions(sent, validated, loc, findings))
        return validated

    def _attempt(self, value: Any) -> Outcome:
        try:
            return Outcome(self.validate(value))
        except Exception as error:
            if not is_validation_error(error):
                raise
            return Outcome(None, error, wanted_types(error))

    def _run_shaped(self, value: Any, loc: Loc, findings: Findings) -> tuple[Any, Any]:
        outcome = self._attempt(value)
        if outcome.error is None:
            return value, outcome.value
        if self._shape is None:
            assert self.shape is not None
            self._shape = self.shape()
        trial = Findings(findings.coerce)
        shaped = self._shape.check(value, loc, trial)
        if not trial.found:
            outcome = self._attempt(shaped)
            if outcome.error is not None:
                raise outcome.error
        findings.absorb(trial)
        return shaped, outcome.value


def validation_of(model: Any) -> Validation | None:
    """Return how ``model`` validates; None if it has no validation of its own."""
    if hasattr(model, "model_validate"):
        return Validation(model.model_validate, model.model_json_schema)
    if hasattr(model, "validate_python") and hasattr(model, "json_schema"):  # a TypeAdapter
        return Validation(model.validate_python, model.json_schema)
    if hasattr(model, "__pydantic_validator__") or has_tag(model):  # a pydantic dataclass
        adapter = sys.modules["pydantic"].TypeAdapter(model)
        return Validation(adapter.validate_python, adapter.json_schema)
    if hasattr(model, "parse_obj") and hasattr(model, "__fields__"):  # pydantic 1
        return Validation(model.parse_obj, model.schema)
    if hasattr(model, "__struct_fields__"):
        return _struct_validation(model)
    return None


def _struct_validation(model: Any) -> Validation:
    msgspec: Any = sys.modules["msgspec"]

    def document(ref_template: str = "#/$defs/{model}") -> dict[str, Any]:
        template = ref_template.replace("{model}", "{name}")
        (schema,), definitions = msgspec.json.schema_components([model], ref_template=template)
        return {**schema, "$defs": definitions}

    def shape() -> ObjectCheck:
        hints, config = Hints(model_check), model.__struct_config__
        fields = {
            field.encode_name: FieldCheck(
                field.encode_name, hints.compile(field.type), required=field.required
            )
            for field in msgspec.structs.fields(model)
        }
        if config.tag_field is not None:
            fields[config.tag_field] = FieldCheck(config.tag_field, ANYTHING, required=False)
        return ObjectCheck(fields, extra=None if config.forbid_unknown_fields else ANYTHING)

    return Validation(lambda value: msgspec.convert(value, model), document, shape)


def is_validation_error(error: BaseException) -> bool:
    """Say whether a library of validation raised this about the value it was given."""
    return callable(getattr(error, "errors", None)) or is_known_error(error)


class ModelCheck(Check):
    """A value of a model class inside type hints."""

    __slots__ = ("_model", "_validation")
    kind = "object"

    def __init__(self, model: Any, validation: Validation) -> None:
        self._model = model
        self._validation = validation

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Return the validated model; its errors become findings below ``loc``."""
        if type(value) is self._model:
            return value
        try:
            return self._validation.run(value, loc, findings)
        except Exception as error:
            if not is_validation_error(error):
                raise

            for issue in ToolError.from_validation_error("", error, value).issues:
                findings.add_issue((*loc, *issue.loc), issue)
            return value

    def schema(self) -> dict[str, Any]:
        """Return the model's own schema, its definitions under names that no other model has."""
        classes = get_args(self._model.__origin__) if has_tag(self._model) else (self._model,)
        name = "_or_".join(getattr(kind, "__name__", "other") for kind in classes)
        prefix = "".join(c if c.isalnum() else "_" for c in name)
        document = self._validation.document(ref_template=f"#/$defs/{prefix}.{{model}}")
        parts = {**document.get("definitions", {}), **document.get("$defs", {})}
        rest = {name: part for name, part in document.items() if name not in _DEFINITIONS}
        return {**rest, "$defs": {f"{prefix}.{name}": part for name, part in parts.items()}}


_DEFINITIONS = ("$defs", "definitions")


def model_check(kind: Any, *, is_last: bool = False) -> Check | None:
    """Return the check of a class, or a tagged union, with validation of its own; else None.

    Args:
        kind: The class.
        is_last: Whether there is no other check: pydantic is asked, where the host has loaded it.
    """
    validation = _by_adapter(kind) if is_last else validation_of(kind)
    return None if validation is None else ModelCheck(kind, validation)


def _by_adapter(kind: Any) -> Validation | None:
    make = getattr(sys.modules.get("pydantic"), "TypeAdapter", None)
    if make is None:
        return None
    try:
        adapter = make(kind)
        adapter.json_schema()
    except Exception:  # noqa: BLE001 - a class that pydantic knows nothing of, or cannot describe
        return None
    return Validation(adapter.validate_python, adapter.json_schema)


def plan_of_model(model: Any, parameters: Parameters) -> Plan:
    """Return the plan of a tool declared with ``model=``.

    Raises:
        ConfigError: The model is of no known kind.
    """
    validation = validation_of(model)
    if validation is not None:
        return ModelPlan(model, validation, parameters)
    check = Hints(model_check).compile(model)
    if isinstance(check, ObjectCheck):
        return ObjectPlan(model, check, parameters)

    raise ConfigError(
        "model= takes a pydantic model or TypeAdapter, a msgspec Struct, a dataclass or a "
        f"TypedDict, not {model!r}"
    )


class ModelPlan(Plan):
    """Validation by a pydantic model, a TypeAdapter or a msgspec struct."""

    def __init__(self, model: Any, validation: Validation, parameters: Parameters) -> None:
        self._validation = validation
        self._hand_over = _Handover(model, parameters)
        self.optional = False

    def prepare(self, arguments: dict[Any, Any], findings: Findings) -> dict[str, Any]:
        """Return the model's fields.

        Raises:
            Exception: Whatever the model raises; see ``is_validation_error``.
        """
        validated = self._validation.run(arguments, (), findings)
        return {} if findings.found else self._hand_over(validated)

    def schema(self) -> dict[str, Any]:
        """Return the model's own schema."""
        return self._validation.document()


class ObjectPlan(Plan):
    """Validation by a dataclass or a TypedDict, from its type hints."""

    def __init__(self, model: Any, check: ObjectCheck, parameters: Parameters) -> None:
        self._check = check
        self._hand_over = _Handover(model, parameters)
        self.optional = not any(field.required for field in check.fields.values())

    def prepare(self, arguments: dict[Any, Any], findings: Findings) -> dict[str, Any]:
        """Return the fields of the checked object."""
        checked = self._check.check(arguments, (), findings)
        return {} if findings.found else self._hand_over(checked)

    def schema(self) -> dict[str, Any]:
        """Return the schema the hints amount to."""
        return hoisted(self._check.schema())


class _Handover:
    """Turns a validated model into the keyword arguments of the function."""

    __slots__ = ("_accepted", "_whole")

    def __init__(self, model: Any, parameters: Parameters) -> None:
        self._accepted = None if parameters.takes_extra else frozenset(parameters.annotations)
        # A function may also take the model itself: ``def fetch(params: HttpRequestParams)``.
        self._whole = next(
            (name for name, annotation in parameters.annotations.items() if annotation is model),
            None,
        )

    def __call__(self, validated: Any) -> dict[str, Any]:
        fields = {
            name: value
            for name, value in fields_of(validated)
            if self._accepted is None or name in self._accepted
        }
        if self._whole is not None:
            fields[self._whole] = validated
        return fields


def fields_of(validated: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and value of every field of a validated model."""
    if type(validated) is dict:
        yield from validated.items()
        return
    kind = type(validated)
    names = declared(kind) or ()
    if tuple(names) == ("root",) and hasattr(validated, "root"):
        yield from fields_of(validated.root)
        return
    for name in names:
        yield name, getattr(validated, name)
    extra = getattr(validated, "__pydantic_extra__", None)
    if type(extra) is dict:
        yield from extra.items()


def _is_as_sent(sent: Any, validated: Any) -> bool:
    """Say whether every plain field of a flat model is what was sent, as it nearly always is."""
    state = getattr(validated, "__dict__", None)
    if type(sent) is not dict or type(state) is not dict or len(state) != len(sent):
        return False
    for name, value in state.items():
        item = sent.get(name, ABSENT)
        kind = type(value)
        if kind is not type(item) or kind not in PLAIN_TYPES or (kind is str and item != value):
            return False
    return bool(state)


def conversions(
    sent: Any, validated: Any, loc: Loc, findings: Findings, parents: Parents = ()
) -> Iterator[tuple[Loc, object, object]]:
    """Yield ``(loc, sent, validated)`` where a lax model silently changed a value's JSON type.

    What a model silently left out goes into the phantoms of ``findings`` on the way.

    A string that became a number was repaired, whoever did it. A string that became a date was
    not: JSON has no other way to write a date. An integer where a number is wanted is one.

    Args:
        sent: What the model sent.
        validated: What became of it.
        loc: Where it stands in the arguments.
        findings: Of the call.
        parents: The models that it is inside of.
    """
    before, after = type(sent), type(validated)
    if before is dict and len(loc) < _MAX_WALK:
        known = 0
        any_keys = after is dict and _has_any_keys(parents)
        for name, value in fields_of(validated):
            item = _sent_as(sent, name, after)
            if item is ABSENT:
                continue
            known += 1
            if item is not value:
                inside = (*parents, (after, name))
                at = 0 if any_keys else name
                yield from conversions(item, value, (*loc, at), findings, inside)
        if known < len(sent):
            findings.note_dropped(sent, after, loc, parents)
    elif before is list and after is list and len(loc) < _MAX_WALK:
        for index, (item, value) in enumerate(zip(sent, validated, strict=False)):
            if item is not value:
                yield from conversions(item, value, (*loc, index), findings, parents)
    elif _is_conversion(sent, validated):
        yield loc, sent, validated


def _has_any_keys(parents: Parents) -> bool:
    """Whether the dict in the innermost field has keys that are data, as no TypedDict has."""
    if not parents:
        return False  # the arguments themselves
    kind, name = parents[-1]
    fields = declared(kind)
    field = fields.get(name) if isinstance(fields, dict) else None
    return not _has_typed_dict(getattr(field, "annotation", None))


def _has_typed_dict(annotation: Any) -> bool:
    if hasattr(annotation, "__total__"):
        return True
    return any(map(_has_typed_dict, get_args(annotation)))


def _is_conversion(sent: Any, validated: Any) -> bool:
    before, after = type(sent), type(validated)
    if before is str:
        return _text_was_repaired(sent, validated)
    if after is list:
        return before is not tuple and before is not set
    if before is int and after is float:
        return False
    return before is not after and before in _NUMBERS and after in _NUMBERS


_NUMBERS = (bool, int, float)


def _text_was_repaired(sent: str, validated: Any) -> bool:
    """Say whether a string became what JSON could have said itself, or was a sloppy spelling."""
    after = type(validated)
    if after is str:
        return sent != str(validated) and sent.strip() == str(validated)
    if after in _JSON_TYPES:
        return True
    if hasattr(after, "__members__"):  # an Enum
        return bool(sent not in (validated.value, validated.name))
    if after.__module__ == "datetime" and after.__qualname__ == "date":
        return bool(sent != validated.isoformat())
    return False


def _sent_as(sent: dict[Any, Any], name: str, kind: type) -> Any:
    """Return the value sent for field ``name``, which may go by an alias."""
    if name in sent:
        return sent[name]
    fields = declared(kind)
    field = fields.get(name) if isinstance(fields, dict) else None
    for attribute in ("validation_alias", "alias"):
        alias = getattr(field, attribute, None)
        if isinstance(alias, str) and alias in sent:
            return sent[alias]
    return ABSENT
