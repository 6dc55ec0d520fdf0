"""A patch works when it is applied: it accepts what the model sent."""

from __future__ import annotations

import ast
import json
from datetime import date
from typing import Any

import pydantic
import pytest
from jsonschema import Draft202012Validator

from toolfault_dashboard.analysis.fixes.opportunities import FixKey
from toolfault_dashboard.analysis.fixes.patches import patches
from toolfault_dashboard.analysis.fixes.remedies import REMEDIES

SENT: dict[str, tuple[object, object]] = {
    "bool_from_string": ("yes", True),
    "int_from_string": ("5", 5),
    "float_from_string": ("2.5", 2.5),
    "json_from_string": ('{"a": 1}', {"a": 1}),
    "wrap_in_list": ("a", ["a"]),
    "strip": (" a ", "a"),
    "date_from_string": ("2026/01/31", date(2026, 1, 31)),
    "fold_case": ("RED", "red"),
    "close_choice": ("Red", "red"),
    "clamp": (500, 10),
}
"""What a model sent, and what the tool should get, by remedy."""


def _model(annotation: str, remedy: str) -> type[pydantic.BaseModel]:
    """A strict model with the patched argument, its placeholders filled in."""
    filled = {"T": str if remedy == "wrap_in_list" else Any, "LOW": 0, "HIGH": 10, "Choice": str}
    names = {name: getattr(pydantic, name) for name in ("BeforeValidator", "Field", "Json")}
    names |= {name: getattr(pydantic, name) for name in ("StringConstraints", "AliasChoices")}
    from typing import Annotated

    scope: dict[str, Any] = {**names, **filled, "Annotated": Annotated, "json": json, "date": date}
    code = f"class Model(Base):\n    {annotation}\n"

    class Base(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(strict=True)

    scope["Base"] = Base
    exec(compile(code, "patch", "exec", dont_inherit=True), scope)
    return scope["Model"]


@pytest.mark.parametrize("remedy", SENT)
def test_the_pydantic_patch_accepts_what_was_sent(remedy: str):
    """A strict model that refuses the value takes it with the patch, as what was meant."""
    (text,) = (p.text for p in patches(FixKey("t", "a.value", remedy)) if p.kind == "pydantic")
    sent, meant = SENT[remedy]
    model = _model(text, remedy)
    assert model.model_validate({"value": sent}).model_dump() == {"value": meant}


@pytest.mark.parametrize(
    "remedy", [name for name in SENT if name not in ("strip", "fold_case", "close_choice")]
)
def test_the_json_schema_patch_accepts_what_was_sent(remedy: str):
    """The schema of the patch is one, and the value that was refused is valid by it."""
    (text,) = (p.text for p in patches(FixKey("t", "value", remedy)) if p.kind == "JSON schema")
    schema = json.loads(text)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate({"value": SENT[remedy][0]})


def test_the_json_schema_patch_of_json_in_text_takes_nothing_else():
    """``contentMediaType`` alone forbids nothing, so a number would pass."""
    (text,) = (
        p.text for p in patches(FixKey("t", "value", "json_from_string")) if p.kind == "JSON schema"
    )
    assert not Draft202012Validator(json.loads(text)).is_valid({"value": 5})


def test_an_alias_is_taken_in_place_of_the_name():
    """Model and schema take the name that the model writes instead."""
    found = {p.kind: p.text for p in patches(FixKey("t", "query", "alias", "q"))}
    model = _model(found["pydantic"], "alias")
    assert model.model_validate({"q": "x"}).model_dump() == {"query": "x"}
    Draft202012Validator(json.loads(found["JSON schema"])).validate({"q": "x"})


@pytest.mark.parametrize("remedy", sorted(REMEDIES - {"open"}))
def test_every_remedy_has_code_and_words(remedy: str):
    """Each can be carried out in code and in words; a name that is code appears in neither code."""
    hostile = 'x"); import os; os.system("rm'
    for patch in patches(FixKey(hostile, hostile, remedy, hostile)):
        assert "os" not in patch.text.split()
        assert "import" not in patch.text
    found = patches(FixKey("tool", "field", remedy, "other"))
    kinds = {patch.kind for patch in found}
    assert kinds & {"SDK", "pydantic"}
    assert kinds & {"description", "message"}
    for patch in found:
        if patch.kind == "JSON schema" and remedy != "all_at_once":
            Draft202012Validator.check_schema(json.loads(patch.text))
        elif patch.kind == "pydantic":
            ast.parse(patch.text)


def test_what_has_no_remedy_has_no_patch():
    """Nothing is advised where nothing is known."""
    assert patches(FixKey("tool", "field", "open", "timeout")) == ()
    assert patches(FixKey("tool", "field", "one of a sender's own")) == ()
