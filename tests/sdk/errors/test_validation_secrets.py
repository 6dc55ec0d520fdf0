"""Secrets that errors of validation libraries would repeat."""

from __future__ import annotations

import json

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)
from tests.sdk.errors.refusing import failure


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


class Either(BaseModel):
    x: int | list[str]


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
