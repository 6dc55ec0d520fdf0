"""What counts as a secret in this process."""

from __future__ import annotations

from itertools import islice

from toolfault.errors._exceptions import ConfigError
from toolfault.errors._keys import key_words, names_secret
from toolfault.errors._types import is_any
from toolfault.errors._words import REDACTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from toolfault.errors._error import ToolError
    from toolfault.errors._issue import Issue

    Redactor = Callable[[str], str]

__all__ = [
    "RedactionPolicy",
    "configure_redaction",
    "extend_redaction",
    "hidden_in",
    "hide",
    "is_secret_key",
    "names_a_secret",
    "redaction_policy",
    "secret_values",
    "shown_anyway",
    "without",
]

_MOST_CACHED_KEYS = 4_096
_MOST_KEYS_READ = 100
_SHORTEST_QUOTED = 4
_LONGEST_QUOTED = 500
_MOST_QUOTED = 20
_QUOTING = ("_message", "llm_message", "told", "retry_hint", "expected", "received", "snippet")
_NAME_KEYS = ("name", "key", "field", "header")


class RedactionPolicy:
    """What counts as a secret besides the built-in rules.

    Args:
        redact_keys: More keys whose values are secrets, in any spelling (`iban`, `customerName`).
        keep_keys: Keys whose values stay although the built-in rules would take them.
        redactor: A last step over every text, `(text) -> text`. When it raises or returns
            something else than text, the whole text is dropped.

    Raises:
        ConfigError: A key has no letters, or *redactor* cannot be called.
    """

    __slots__ = ("_cache", "_keep", "_more", "redactor")

    def __init__(
        self,
        *,
        redact_keys: Iterable[str] = (),
        keep_keys: Iterable[str] = (),
        redactor: Redactor | None = None,
    ) -> None:
        if redactor is not None and not callable(redactor):
            raise ConfigError("redactor must be a function that takes a text and returns a text")
        self._more = _word_set(redact_keys, "redact_keys")
        self._keep = _word_set(keep_keys, "keep_keys")
        self._cache: dict[str, bool] = {}
        self.redactor = redactor

    def is_secret(self, key: str) -> bool:
        """Whether the value of *key* is a secret."""
        known = self._cache.get(key)
        if known is None:
            known = self._judge(key_words(key))
            if len(self._cache) < _MOST_CACHED_KEYS and len(key) <= 64:
                self._cache[key] = known
        return known

    def _judge(self, words: tuple[str, ...]) -> bool:
        for more in self._more:
            width = len(more)
            if any(words[i : i + width] == more for i in range(len(words) - width + 1)):
                return True
        return words not in self._keep and names_secret(words)

    def extended(self, redact_keys: Iterable[str], keep_keys: Iterable[str]) -> RedactionPolicy:
        """The same policy with more keys.

        Raises:
            ConfigError: A key has no letters.
        """
        more = RedactionPolicy(redact_keys=redact_keys, keep_keys=keep_keys)
        more._more |= self._more
        more._keep |= self._keep
        more.redactor = self.redactor
        return more


def _word_set(keys: Iterable[str], name: str) -> frozenset[tuple[str, ...]]:
    if isinstance(keys, str):
        raise ConfigError(f'{name} is a sequence of keys: write ("{keys[:40]}",)')
    found = {key_words(key) for key in keys}
    if () in found:
        raise ConfigError(f"each of {name} needs at least one letter")
    return frozenset(found)


_configured = _policy = RedactionPolicy()
_extension: tuple[Iterable[str], Iterable[str]] = ((), ())


def configure_redaction(
    *,
    redact_keys: Iterable[str] = (),
    keep_keys: Iterable[str] = (),
    redactor: Redactor | None = None,
) -> RedactionPolicy:
    """Set the redaction of this process and return it; without arguments, the default one.

    The keys that `toolfault.init` was given are added to it.

    Raises:
        ConfigError: An argument cannot work (see `RedactionPolicy`).
    """
    global _configured  # noqa: PLW0603 - one policy per process: every layer must agree
    _configured = RedactionPolicy(redact_keys=redact_keys, keep_keys=keep_keys, redactor=redactor)
    return extend_redaction(*_extension)


def extend_redaction(redact_keys: Iterable[str], keep_keys: Iterable[str]) -> RedactionPolicy:
    """Add the keys of `init` to what was configured; those of an earlier `init` are forgotten.

    Raises:
        ConfigError: A key has no letters.
    """
    global _extension, _policy  # noqa: PLW0603 - see above
    _policy = _configured.extended(redact_keys, keep_keys)
    _extension = (redact_keys, keep_keys)
    return _policy


def redaction_policy() -> RedactionPolicy:
    """The redaction of this process."""
    return _policy


def is_secret_key(key: object) -> bool:
    """Whether a value under *key* must not be shown (numbers, booleans and None may)."""
    return type(key) is str and _policy.is_secret(key)


def shown_anyway(value: object) -> bool:
    """Whether *value* is shown under a secret key too: numbers, booleans and None are."""
    return value is None or is_any(value, int, float)


def names_a_secret(pairs: dict[Any, Any]) -> bool:
    """Whether *pairs* has the shape `{"name": "password", "value": "x"}`."""
    if dict.get(pairs, "value") is None:
        return False
    return any(is_secret_key(dict.get(pairs, name)) for name in _NAME_KEYS)


def secret_values(value: object) -> list[str]:
    """The texts of at least four characters under secret keys of *value*, at most 20.

    The longest first: a secret may be the beginning of another, and what is left of that would
    still be told.

    Args:
        value: An object, or the JSON text of one.
    """
    if type(value) is str:
        import json

        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    return sorted(_secret_values(value, 3), key=len, reverse=True)


def _secret_values(value: object, depth: int) -> list[str]:
    found: list[str] = []
    if type(value) is not dict or depth == 0:
        return found
    for key, item in islice(dict.items(value), _MOST_KEYS_READ):
        if type(item) is str and is_secret_key(key) and len(item) >= _SHORTEST_QUOTED:
            found.append(item)
            if len(item) > _LONGEST_QUOTED:
                found.append(item[:_LONGEST_QUOTED])  # where the text that quotes it was cut
        else:
            found += _secret_values(item, depth - 1)
    return found[:_MOST_QUOTED]


def hide(error: ToolError, values: Sequence[str]) -> None:
    """Take *values* out of the texts of *error*, which whoever wrote them may quote."""
    state = error.__dict__
    for name in _QUOTING:
        state[name] = without(state.get(name), values)
    error.args = (error.tool, state["_message"])
    state["_issues"] = tuple(hidden_in(issue, values) for issue in state["_issues"])


def hidden_in(issue: Issue, values: Sequence[str]) -> Issue:
    """*issue* whose message quotes none of *values*: a validator may compare two fields."""
    message = without(issue.message, values)
    return issue if message == issue.message else issue.with_(message=message)


def without(text: Any, values: Sequence[str]) -> Any:
    """*text*, or None where there is none, with `[REDACTED]` in the place of *values*."""
    for value in values if text else ():
        text = text.replace(value, REDACTED)
    return text
