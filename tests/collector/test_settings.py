"""Settings: documented, checked, read from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from toolfault_collector.settings import Settings

DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_every_setting_is_documented() -> None:
    """Each has a description, and its variable is on the page of settings."""
    text = DOCS.read_text("utf-8")
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert f"`TOOLFAULT_{name.upper()}`" in text


def test_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """TOOLFAULT_* variables set what is not given."""
    monkeypatch.setenv("TOOLFAULT_PORT", "9000")

    assert Settings().port == 9000
    assert Settings(port=1).port == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("port", 70_000), ("synchronous", "OFF"), ("max_event_bytes", 2**21), ("outbox_mib", 0)],
)
def test_impossible_values_are_refused(name: str, value: object) -> None:
    """A value that cannot work is an error at start."""
    with pytest.raises(ValidationError, match=name):
        Settings.model_validate({name: value})


def test_database_url_is_not_shown() -> None:
    """A settings object can be printed: the URL, which may hold a password, is left out."""
    assert "hunter2" not in repr(Settings(database_url="postgresql://u:hunter2@h/d"))


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable without a value, as docker-compose passes it on, leaves the default."""
    monkeypatch.setenv("TOOLFAULT_DATABASE_URL", "")
    monkeypatch.setenv("TOOLFAULT_PORT", "")

    assert Settings().database_url.startswith("sqlite:///")
    assert Settings().port == 8321
