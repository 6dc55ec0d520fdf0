"""Errors of pydantic, msgspec and jsonschema as failures."""

from __future__ import annotations

import dataclasses
import json
import typing
from typing import Annotated, Any, Literal

import jsonschema
import msgspec
import pytest
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
    validate_call,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import PydanticCustomError
from pydantic_core._pydantic_core import list_all_errors
from typing_extensions import TypedDict

from toolfault.coerce import coerce_int, coerce_json
from toolfault.errors import ToolError, ToolErrorCode
from toolfault.formatting import PYDANTIC_CODES, code_of_type


def refusal(call: typing.Callable[[], Any]) -> ValidationError:
    """The validation error that *call* raises."""
    with pytest.raises(ValidationError) as caught:
        call()
    return caught.value


def failure(model: Any, args: Any, **options: Any) -> ToolError:
    """The failure of *args* for a pydantic model."""
    return ToolError.from_validation_error("t", refusal(lambda: model(**args)), args, **options)


def issue_of(model: Any, args: Any) -> Any:
    """The only issue of *args*."""
    (issue,) = failure(model, args).issues
    return issue


@pytest.mark.parametrize("name", [error["type"] for error in list_all_errors()])
def test_every_error_type_of_the_installed_pydantic_is_mapped(name):
    """[H-13] Ruling 3: an upgrade of pydantic that adds a type is noticed here."""
    assert name in PYDANTIC_CODES
    assert PYDANTIC_CODES[name] in {code.value for code in ToolErrorCode}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ellipsis_error", "wrong_type"),
        ("fraction_parsing", "wrong_type"),
        ("recursion_depth_exceeded", "invalid_format"),
        ("named_tuple_type", "wrong_type"),
        ("never_heard_of", "invalid_input"),
        ("malformed_diff", "malformed_diff"),
        ("not_found", "not_found"),
        ("value_error.missing", "missing_field"),
        ("type_error.integer", "wrong_type"),
        ("value_error.number.not_le", "field_too_large"),
        ("value_error.any_str.min_length", "field_too_small"),
        ("value_error.extra", "unknown_field"),
        ("value_error.jsondecode", "malformed_json"),
    ],
)
def test_types_outside_the_table_have_a_code_too(name, code):
    """[H-13] Newer, custom and pydantic 1 types are mapped; unknown ones are invalid_input."""
    assert code_of_type(name) == code


def test_a_value_error_about_json_is_malformed_json():
    """[H-10] The text decides for value errors that start with Invalid JSON."""
    assert code_of_type("value_error", "Invalid JSON: Expecting value") == "malformed_json"
    assert code_of_type("value_error", "no good") == "invalid_input"


class Http(BaseModel):
    follow_redirects: bool
    port: Annotated[int, BeforeValidator(coerce_int)] = Field(ge=1, le=65_535)


class StrictHttp(BaseModel):
    model_config = ConfigDict(strict=True)

    follow_redirects: bool
    port: int
    headers: Annotated[dict[str, str], BeforeValidator(coerce_json)]


def test_the_example_of_the_founding_document():
    """[A07][H-01][H-10][H-11] Three errors at once, in the order of the model."""
    args = {"follow_redirects": "true", "port": "80", "headers": "{invalid}"}
    error = failure(StrictHttp, args, context="HTTP request")

    assert error.render("llm") == (
        "Error: Invalid HTTP request - 3 errors:\n"
        "  • follow_redirects: Input should be a valid boolean (received str: 'true')\n"
        "  • port: Input should be a valid integer (received str: '80')\n"
        "  • headers: Invalid JSON: Expecting property name enclosed in double quotes "
        "(received str: '{invalid}')\n"
        "\n"
        "Please fix all errors and retry with correct types."
    )
    assert error.render("user") == (
        "t: Invalid HTTP request - 3 errors (follow_redirects, port, headers)"
    )
    assert [(i.code, i.expected, i.received) for i in error.issues] == [
        ("wrong_type", "boolean", "'true'"),
        ("wrong_type", "integer", "'80'"),
        ("malformed_json", None, "'{invalid}'"),
    ]
    assert error.exception_type == "pydantic_core._pydantic_core.ValidationError"


def test_received_is_what_the_model_sent():
    """[A10][H-09] The value before coercion is shown, not pydantic's own input."""
    issue = issue_of(Http, {"follow_redirects": True, "port": "99999"})

    assert (issue.code, issue.expected, issue.received, issue.received_type) == (
        "field_too_large",
        "<= 65535",
        "'99999'",
        "str",
    )


def test_one_error_fills_the_top_level():
    """[A09][C5] Field, expected and received of the only issue are those of the failure."""
    error = failure(Http, {"follow_redirects": "maybe", "port": "80"})

    assert error.render("system") == (
        "tool=t code=wrong_type category=parameter: Invalid parameter value for follow_redirects: "
        "Input should be a valid boolean, unable to interpret input (received str: 'maybe')"
        " — field: follow_redirects — expected: boolean — received: 'maybe'"
        " — exception: pydantic_core._pydantic_core.ValidationError"
    )


class Login(BaseModel):
    model_config = ConfigDict(extra="forbid")

    user: str
    password: str = Field(min_length=8)


def test_missing_secret_and_unknown_at_once():
    """[A11][C16][H-06] Nothing leaks from pydantic's inputs, the whole arguments among them."""
    error = failure(Login, {"password": "abc", "api_key": "sk-live123456"})

    assert error.render("llm") == (
        "Error: Invalid parameters - 3 errors:\n"
        "  • user: Missing required parameter\n"
        "  • password: String should have at least 8 characters (received str: [REDACTED])\n"
        "  • api_key: Unexpected parameter (received str: [REDACTED])\n"
        "\n"
        "Please fix all errors and retry with correct types."
    )
    everything = json.dumps([error.to_llm_payload(), *error.renderings().values()])
    assert "'abc'" not in everything
    assert "sk-live" not in everything
    assert error.issues[1].expected == "length >= 8"


class Item(BaseModel):
    port: int


class Batch(BaseModel):
    items: list[Item]


def test_nested_paths_are_dotted():
    """[A12][H-05] List indexes are part of the field; patterns group them."""
    error = failure(Batch, {"items": [{"port": 1}, {"port": "x"}, {}]})

    assert [(i.field, i.field_pattern, i.root_field) for i in error.issues] == [
        ("items.1.port", "items.*.port", "items"),
        ("items.2.port", "items.*.port", "items"),
    ]
    assert error.issues[0].received == "'x'"
    assert error.issues[1].received is None


class Range(BaseModel):
    start: int
    end: int

    @model_validator(mode="after")
    def ordered(self):
        if self.end < self.start:
            raise ValueError("end must be >= start")
        return self


def test_an_error_of_the_whole_model_shows_no_input():
    """[A13][C12] The prefix of pydantic is stripped and the arguments are not echoed."""
    error = failure(Range, {"start": 3, "end": 1})

    assert error.render("llm") == "Error: Invalid parameters: end must be >= start"
    assert (error.field, error.issues[0].field, error.issues[0].received) == (None, "(root)", None)


@pytest.mark.parametrize(
    ("text", "shown"), [("must be even", "must be even"), ("", "Invalid value")]
)
def test_prefixes_of_assertions_are_stripped(text, shown):
    """[C12] Assertion failed is stripped; an empty text says Invalid value."""

    class Model(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, value):
            raise AssertionError(text)

    assert issue_of(Model, {"n": 1}).message == shown


def test_consequences_of_other_errors_do_not_count():
    """[H-05] Ruling 12: default_factory_not_called is dropped from issues and counts."""

    class Model(BaseModel):
        a: int
        b: int = Field(default_factory=lambda data: data["a"])

    error = failure(Model, {"a": "x"})

    assert [i.field for i in error.issues] == ["a"]
    assert error.issues_total == 1


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    bark: str


class Owner(BaseModel):
    pet: Cat | Dog = Field(discriminator="kind")


class Either(BaseModel):
    x: int | list[str]


@pytest.mark.parametrize("value", [{"int": 5}, {"list[str]": 5}, "y", [{"int": 1}]])
def test_a_union_shows_the_whole_value_of_the_field(value):
    """[H-05] Ruling 4: a branch label is never followed into the value."""
    for issue in failure(Either, {"x": value}).issues:
        if len(issue.loc) == 2:
            assert issue.received == repr(value)


def test_a_union_counts_as_one_field():
    """[H-05] All branches stay in the message; the root field is one."""
    error = failure(Either, {"x": {}})

    assert len(error.issues) == 2
    assert {i.root_field for i in error.issues} == {"x"}


def test_a_tagged_union_shows_the_whole_value_of_the_field():
    """[H-05] Ruling 4: inside a branch, too, received is the field's value."""
    pet = {"kind": "cat", "cat": 7, "lives": "x"}
    issue = issue_of(Owner, {"pet": pet})

    assert issue.field == "pet.cat.lives"
    assert issue.received == repr(pet)


def test_an_invalid_tag():
    """[P-06] Ruling 5: the user reads a sentence made from the code, not the tag."""
    error = failure(Owner, {"pet": {"kind": "bird"}})

    assert (error.code, error.expected) == ("invalid_choice", "'cat', 'dog'")
    assert "bird" in error.render("llm")
    assert error.render("user") == (
        "t: Invalid parameter value for pet: not one of the allowed values"
    )


def test_a_missing_tag():
    """[H-06] union_tag_not_found says what the given value lacks."""
    error = failure(Owner, {"pet": {"lives": 9}})

    assert error.code == "missing_field"
    assert error.render("llm") == (
        "Error: Invalid parameter value for pet: Unable to extract tag using discriminator 'kind' "
        "(received dict: {'lives': 9})"
    )


def test_arguments_parsed_twice_are_still_recognised():
    """[A10] Equal containers count as the same value, though they are other objects."""
    args = {"x": {"int": 5}}
    with pytest.raises(ValidationError) as caught:
        Either.model_validate_json(json.dumps(args))
    error = ToolError.from_validation_error("t", caught.value, json.loads(json.dumps(args)))

    assert {i.received for i in error.issues} == {"{'int': 5}"}


def test_a_real_key_that_is_named_like_a_branch_is_followed():
    """[A10] Only a part that pydantic added is a label; real keys of a dict are not."""

    class Model(BaseModel):
        x: dict[str, dict[str, int]]

    issue = issue_of(Model, {"x": {"int": {"str": "no"}}})

    assert (issue.field, issue.received) == ("x.int.str", "'no'")


def test_coerced_values_inside_containers_show_the_raw_one():
    """[A10] The raw value is found below lists and dicts as well."""

    class Model(BaseModel):
        ports: list[Annotated[int, Field(le=10)]]

    assert issue_of(Model, {"ports": ["1", "99"]}).received == "'99'"


def test_a_wrong_key_of_a_dict_is_shown_itself():
    """[H-05] For an error of a key, received is the key."""

    class Model(BaseModel):
        d: dict[int, int]

    issue = issue_of(Model, {"d": {"a": 1}})
    assert (issue.received, issue.field) == ("'a'", "d.a.[key]")


def test_json_inside_a_string_is_not_indexed():
    """[A10] The path into parsed JSON shows the string the model sent."""
    from pydantic import Json

    class Model(BaseModel):
        a: Json[list[int]]

    assert issue_of(Model, {"a": '["x"]'}).received == "'[\"x\"]'"


def test_an_alias_that_is_no_key_falls_back_to_pydantics_input():
    """[A10] Where the path does not start in the arguments, pydantic knows the value."""

    class Model(BaseModel):
        model_config = ConfigDict(populate_by_name=True, loc_by_alias=True)
        follow: int = Field(alias="followRedirects")

    assert issue_of(Model, {"follow": "x"}).received == "'x'"


def test_a_secret_type_hides_its_value_under_any_name():
    """[C16] Trap 6: the length error of a SecretStr has the clear value as its input."""

    class Model(BaseModel):
        pin: SecretStr = Field(min_length=8)
        n: SecretStr | None = None

    error = failure(Model, {"pin": "abc123"})

    assert error.issues[0].received == "[REDACTED]"
    assert "abc123" not in json.dumps([error.to_llm_payload(), error.renderings()])


def test_a_message_that_repeats_a_secret_value_is_cleaned():
    """[C16] A validator of the host may quote the value; a secret one is taken out."""

    class Model(BaseModel):
        password: str

        @field_validator("password")
        @classmethod
        def check(cls, value):
            raise ValueError(f"too simple: {value}")

    error = failure(Model, {"password": "kitten"})
    assert "kitten" not in json.dumps([error.to_llm_payload(), error.renderings()])


def test_a_message_that_repeats_another_fields_secret_is_cleaned():
    """[C16] A validator that compares fields may quote a secret of another field."""

    class Model(BaseModel):
        password: str
        again: str

        @model_validator(mode="after")
        def check(self):
            raise ValueError(f"{self.again} is not {self.password}")

    error = failure(Model, {"password": "kitten", "again": "mitten"})
    assert error.issues[0].message == "mitten is not [REDACTED]"


def test_named_secret_fields_are_hidden():
    """[C16] The caller can name further fields that are secret."""
    error = failure(Either, {"x": "swordfish"}, secret_fields={"x"})

    assert {i.received for i in error.issues} == {"[REDACTED]"}


def test_positional_arguments_go_by_their_parameter_names():
    """[L-10][C16] Trap 4: an index becomes the name, and ArgsKwargs is never printed."""

    @validate_call
    def function(a: int, b: int = 2, *, c: int):
        return a

    error = ToolError.from_validation_error(
        "t", refusal(lambda: function("x", key="hunter2")), parameters=("a", "b", "c")
    )

    assert [(i.field, i.code, i.received) for i in error.issues] == [
        ("a", "wrong_type", "'x'"),
        ("c", "missing_field", None),
        ("key", "unknown_field", "'hunter2'"),
    ]
    assert "ArgsKwargs" not in json.dumps([error.to_llm_payload(), error.renderings()])


def test_type_adapters_dataclasses_and_typed_dicts():
    """[H-02] Everything pydantic validates has the same errors."""

    class Movie(TypedDict):
        year: int

    @pydantic_dataclass
    class Point:
        x: int

    adapter = TypeAdapter(list[Movie])
    args: Any = [{"year": 1}, {"year": "x"}]
    error = ToolError.from_validation_error(
        "t", refusal(lambda: adapter.validate_python(args)), args
    )
    assert (error.field, error.received) == ("1.year", "'x'")
    assert failure(Point, {"x": "y"}).field == "x"
    root = ToolError.from_validation_error(
        "t", refusal(lambda: TypeAdapter(int).validate_python("x"))
    )
    assert (root.issues[0].field, root.issues[0].received) == ("(root)", None)


def test_exceptions_and_links_of_pydantic_do_not_reach_the_model():
    """[P-12] Trap 2: ctx holds exception objects and url is a link; neither is shown."""
    error = failure(Range, {"start": 3, "end": 1})

    text = json.dumps(error.to_llm_payload())
    assert "pydantic.dev" not in text
    assert "ValueError" not in text


def test_custom_error_types_can_name_a_code():
    """[P-17] PydanticCustomError with the name of a code means that code."""

    class Model(BaseModel):
        diff: str

        @field_validator("diff")
        @classmethod
        def check(cls, value):
            raise PydanticCustomError("malformed_diff", "no hunk", {"expected": "a unified diff"})

    issue = issue_of(Model, {"diff": "x"})
    assert (issue.code, issue.message, issue.expected) == (
        "malformed_diff",
        "no hunk",
        "a unified diff",
    )


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (bool, "x", "boolean"),
        (int, "x", "integer"),
        (float, "x", "number"),
        (str, 1, "string"),
        (dict, 1, "object"),
        (list, 1, "array"),
        (None, 1, "null"),
        (Annotated[int, Field(lt=5)], 7, "< 5"),
        (Annotated[int, Field(ge=5)], 3, ">= 5"),
        (Annotated[int, Field(gt=5)], 3, "> 5"),
        (Annotated[list, Field(max_length=1)], [1, 2], "length <= 1"),
        (Annotated[str, Field(max_length=4)], "12345", "length <= 4"),
        (Annotated[str, Field(pattern="^a+$")], "b", "pattern ^a+$"),
        (Annotated[int, Field(multiple_of=5)], 3, "multiple of 5"),
        (Literal["a", "b"], "c", "'a' or 'b'"),
        ("date", "x", "date (YYYY-MM-DD)"),
        ("uuid", "x", "UUID"),
        ("url", "x", "URL"),
    ],
)
def test_expected_speaks_json(annotation, value, expected):
    """[P-06] What was expected is said in JSON words."""
    import datetime
    import uuid

    from pydantic import AnyUrl

    named = {"date": datetime.date, "uuid": uuid.UUID, "url": AnyUrl}
    kind = named.get(annotation, annotation) if isinstance(annotation, str) else annotation
    exc = refusal(lambda: TypeAdapter(dict[str, kind]).validate_python({"f": value}))
    (issue,) = ToolError.from_validation_error("t", exc, {"f": value}).issues

    assert issue.expected == expected


def test_a_thousand_errors_are_counted_and_fifty_kept():
    """[H-16] The true total is told, the first fifty issues are kept."""
    args = {"items": [{"port": "x"}] * 1_000}
    error = failure(Batch, args)

    assert (error.issues_total, len(error.issues)) == (1_000, 50)
    assert error.render("llm").startswith("Error: Invalid parameters - 1000 errors:\n")


class Odd(ValueError):
    """Anything with .errors()."""

    def __init__(self, found):
        super().__init__("odd")
        self.found = found

    def errors(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.mark.parametrize(
    "found",
    [
        [],
        [None, 3],
        RuntimeError("no"),
        5,
        [{}],
        [{"loc": None, "msg": None, "type": None}],
        [{"loc": ("a", object(), 1.5), "msg": object(), "type": object(), "input": object()}],
        [{"loc": "a", "msg": "m", "type": "value_error", "ctx": 5}],
        [{"loc": ("a",) * 1_000, "msg": "m" * 100_000, "type": "t" * 1_000, "input": "x"}],
    ],
)
def test_strange_errors_are_still_one_failure(found):
    """[H-02][P-05] Whatever .errors() gives or raises, there is a failure with an issue."""
    error = ToolError.from_validation_error("t", Odd(found), {"a": 1})

    assert error.category == "parameter"
    assert error.issues
    assert all(error.renderings().values())
    json.dumps(error.to_llm_payload())


def test_errors_in_the_form_of_pydantic_1():
    """[H-06] Errors without input are read too."""
    error = ToolError.from_validation_error(
        "t",
        Odd(
            [
                {"loc": ("a",), "msg": "field required", "type": "value_error.missing"},
                {
                    "loc": ("b",),
                    "msg": "ensure this value is less than or equal to 5",
                    "type": "value_error.number.not_le",
                    "ctx": {"limit_value": 5},
                },
            ]
        ),
        {"b": 7},
    )

    assert [(i.field, i.code, i.message, i.expected, i.received) for i in error.issues] == [
        ("a", "missing_field", "Missing required parameter", None, None),
        (
            "b",
            "field_too_large",
            "ensure this value is less than or equal to 5",
            "<= 5",
            "7",
        ),
    ]


SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "port": {"type": "integer", "maximum": 10},
        "unit": {"enum": ["c", "f"]},
        "tags": {"type": "array", "items": {"type": "string", "minLength": 2}},
        "password": {"type": "string", "minLength": 8},
    },
    "required": ["port", "city"],
    "additionalProperties": False,
}


def test_all_errors_of_jsonschema():
    """[H-02][H-13] A sequence of jsonschema errors is one failure with every issue."""
    args = {
        "port": 99,
        "unit": "k",
        "tags": ["ok", "x", 5],
        "password": "abc",
        "extra": 1,
        "more": 2,
    }
    errors = sorted(
        jsonschema.Draft202012Validator(SCHEMA).iter_errors(args),
        key=lambda e: str(e.absolute_path),
    )
    error = ToolError.from_validation_error("t", errors, args)

    found = {i.field: (i.code.value, i.expected, i.received) for i in error.issues}
    assert found == {
        "city": ("missing_field", None, None),
        "extra": ("unknown_field", None, "1"),
        "more": ("unknown_field", None, "2"),
        "port": ("field_too_large", "<= 10", "99"),
        "unit": ("invalid_choice", "'c' or 'f'", "'k'"),
        "tags.1": ("field_too_small", "length >= 2", "'x'"),
        "tags.2": ("wrong_type", "string", "5"),
        "password": ("field_too_small", "length >= 8", "[REDACTED]"),
    }
    assert "'abc'" not in json.dumps([error.to_llm_payload(), error.renderings()])


def test_one_error_of_jsonschema():
    """[H-02] A raised jsonschema error is read as one issue."""
    args = {"port": "x", "city": "c"}
    with pytest.raises(jsonschema.ValidationError) as caught:
        jsonschema.validate(args, SCHEMA)
    error = ToolError.from_validation_error("t", caught.value, args)

    assert error.render("llm") == (
        "Error: Invalid parameter value for port: Input should be of type integer "
        "(received str: 'x')"
    )
    assert error.cause is caught.value


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    port: Annotated[int, msgspec.Meta(le=10)]
    unit: Literal["c", "f"] = "c"
    name: Annotated[str, msgspec.Meta(min_length=2)] = "ab"


class Outer(msgspec.Struct):
    items: list[Inner]


@pytest.mark.parametrize(
    ("item", "field", "code", "expected", "received"),
    [
        ({"port": "x"}, "items.0.port", "wrong_type", "integer", "'x'"),
        ({"port": 99}, "items.0.port", "field_too_large", "<= 10", "99"),
        ({}, "items.0.port", "missing_field", None, None),
        ({"port": 1, "z": 2}, "items.0.z", "unknown_field", None, "2"),
        ({"port": 1, "unit": "k"}, "items.0.unit", "invalid_choice", None, "'k'"),
        ({"port": 1, "name": "a"}, "items.0.name", "field_too_small", "length >= 2", "'a'"),
        (5, "items.0", "wrong_type", "object", "5"),
    ],
)
def test_errors_of_msgspec(item, field, code, expected, received):
    """[H-02][H-13] The sentence of msgspec is read into field, code and expectation."""
    args = {"items": [item]}
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(args, Outer)
    error = ToolError.from_validation_error("t", caught.value, args)

    assert (error.field, error.code, error.expected, error.received) == (
        field,
        code,
        expected,
        received,
    )


def test_broken_json_of_msgspec():
    """[H-10] A decode error is malformed_json about the arguments as a whole."""
    with pytest.raises(msgspec.DecodeError) as caught:
        msgspec.json.decode(b"{bad", type=Outer)
    error = ToolError.from_validation_error("t", caught.value)

    assert (error.code, error.issues[0].field) == ("malformed_json", "(root)")


def test_a_plain_exception_is_an_issue_of_the_whole():
    """[H-02] What no library made is still told, by its first line."""
    error = ToolError.from_validation_error("t", ValueError("end must be later\nsecond line"))

    assert error.render("llm") == "Error: Invalid parameters: end must be later"


def test_frozen_dataclass_arguments_are_left_alone():
    """[P-07] The arguments of the caller are never changed."""

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        port: str

    args = {"items": [{"port": "x", "password": "y"}], "frozen": Frozen("z")}
    before = json.dumps(args["items"])
    failure(Batch, args)

    assert json.dumps(args["items"]) == before
