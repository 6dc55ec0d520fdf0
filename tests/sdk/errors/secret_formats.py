"""Made-up secrets of 40 formats, 12 places to plant them in, and 3 encodings.

Nothing here is a real credential: every value is drawn from a seeded generator at run time, so
that no scanner finds one in the repository.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from toolfault.errors import ToolError, ToolResult, redact_text, redacted_repr, to_jsonable

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits


@dataclass(frozen=True)
class Secret:
    """One planted secret: the *text* as it stands somewhere, and its *core* that may not leak."""

    name: str
    text: str
    core: str


def _formats(rng: random.Random) -> list[Secret]:
    def some(count: int, alphabet: str = LETTERS) -> str:
        # A letter, a digit and a letter first: issuers' tokens are never of one kind only.
        return "a7B"[: max(count - 1, 0)] * (alphabet is LETTERS) + "".join(
            rng.choice(alphabet) for _ in range(count - (3 if alphabet is LETTERS else 0))
        )

    made: list[Secret] = []

    def add(name: str, text: str, core: str | None = None) -> None:
        made.append(Secret(name, text, core or text))

    add("openai", "sk-" + some(48))
    add("openai_project", "sk-proj-" + some(40))
    add("anthropic", "sk-ant-api03-" + some(60))
    add("stripe_live", "sk_live_" + some(24))
    add("stripe_webhook", "whsec_" + some(32))
    add("github_classic", "ghp_" + some(36))
    add("github_fine", "github_pat_" + some(22) + "_" + some(40))
    add("gitlab", "glpat-" + some(20))
    add("slack_bot", "xoxb-" + some(12, string.digits) + "-" + some(24))
    add("slack_webhook", "https://hooks.slack.com/services/T" + some(8, UPPER) + "/B" + some(24))
    add("aws_id", "AKIA" + some(16, UPPER))
    add("aws_secret", "aws_secret_access_key=" + (key := some(40)), key)
    add("aws_secret_bare", "".join(rng.sample(LETTERS + "+/", 40)))
    add("google_api", "AIza" + some(35))
    add("google_oauth", "ya29." + some(60))
    add("google_client", "GOCSPX-" + some(28))
    jwt = ".".join(
        base64.urlsafe_b64encode(part.encode()).decode().rstrip("=")
        for part in ('{"alg":"HS256","typ":"JWT"}', '{"sub":"' + some(16) + '"}', some(32))
    )
    add("jwt", jwt, jwt.rpartition(".")[2])
    body = some(64)
    add(
        "pem",
        f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n{some(64)}\n-----END RSA PRIVATE KEY-----",
        body,
    )
    add(
        "openssh",
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{some(70)}\n-----END OPENSSH PRIVATE KEY-----",
    )
    add("sendgrid", f"SG.{some(22)}.{some(43)}")
    add("twilio", "SK" + some(32, HEX))
    add("mailgun", "key-" + some(32, HEX))
    add("mailchimp", some(32, HEX) + "-us12")
    add("npm", "npm_" + some(36))
    add("pypi", "pypi-AgEIcHlwaS5vcmc" + some(60))
    add("digitalocean", "dop_v1_" + some(64, HEX))
    add("huggingface", "hf_" + some(34))
    add("databricks", "dapi" + some(32, HEX))
    add("telegram", some(9, "123456789") + ":AA" + some(33))
    add("shopify", "shpat_" + some(32, HEX))
    add("vault", "hvs." + some(24))
    add("grafana", "glsa_" + some(32) + "_" + some(8, HEX))
    add("new_relic", "NRAK-" + some(27, UPPER))
    add("postgres_url", f"postgres://svc:{(pw := some(16))}@db.internal:5432/app", pw)
    add("basic_auth", "Authorization: Basic " + (b := _b64("svc:" + some(14))), b)
    add("bearer", "Authorization: Bearer " + (t := some(40)), t)
    add("cookie", "Cookie: session=" + (c := some(32)) + "; theme=dark", c)
    add("password_pair", "password=" + (p := some(14)), p)
    add("token_pair", "access_token: " + (a := some(20)), a)
    add("card", _card(rng))
    return made


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _card(rng: random.Random) -> str:
    """16 digits that pass the Luhn check."""
    digits = [4] + [rng.randrange(10) for _ in range(14)]
    total = sum(d if i % 2 else (d * 2 - 9 if d > 4 else d * 2) for i, d in enumerate(digits))
    return "".join(map(str, [*digits, -total % 10]))


def formats(seed: int = 7) -> list[Secret]:
    """The 40 formats."""
    return _formats(random.Random(seed))


ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "base64": _b64,
    "percent": lambda text: quote(text, safe=""),
}


class _Errors(ValueError):
    """A validation error as pydantic reports it."""

    def __init__(self, loc: tuple[object, ...], value: object, kind: str = "string_type") -> None:
        super().__init__("1 validation error")
        self._errors = [
            {"type": kind, "loc": loc, "msg": f"Bad value, got {value}", "input": value}
        ]

    def errors(self) -> list[dict[str, object]]:
        return self._errors


def _of_error(error: ToolError) -> list[str]:
    """Everything that the SDK makes of one failure."""
    result: ToolResult[object] = ToolResult.failure(error)
    texts = [error.render(audience) for audience in ("user", "llm", "system")]
    texts += [json.dumps(error.to_llm_payload(), ensure_ascii=False)]
    texts += [json.dumps(result.to_dict(), ensure_ascii=False)]
    texts += [json.dumps(result.to_tool_message("c1"), ensure_ascii=False), result.to_openai_text()]
    texts += [text for issue in error.issues for text in (issue.received, issue.message) if text]
    return texts


def _of_value(value: object, args: object, loc: tuple[object, ...]) -> list[str]:
    error = ToolError.from_validation_error("t", _Errors(loc, value), args)
    texts = _of_error(error)
    texts += [redacted_repr(args), json.dumps(to_jsonable(args, redact=True), ensure_ascii=False)]
    return texts


def _arg_key(s: str) -> list[str]:
    args = {s: 1}
    error = ToolError.from_validation_error("t", _Errors((s,), 1, "extra_forbidden"), args)
    return [*_of_error(error), redacted_repr(args), json.dumps(to_jsonable(args, redact=True))]


def _arg_value(s: str) -> list[str]:
    return _of_value(s, {"note": s}, ("note",))


def _nested_list(s: str) -> list[str]:
    args = {"a": [["x", {"b": [s]}]]}
    return _of_value(args["a"], args, ("a",))


def _json_in_string(s: str) -> list[str]:
    text = json.dumps({"config": {"value": s}, "n": 1})
    return [*_of_value(text, {"body": text}, ("body",)), redact_text(text)]


def _text(text: str) -> list[str]:
    """An authored message and an exception with this text, and a hint, a snippet, a context."""
    authored = ToolError(
        "t",
        text,
        "io",
        category="parameter",
        field="f",
        received=repr(text),
        received_type="str",
        snippet=text,
        retry_hint=text,
        retry_context={"seen": text},
        expected=text,
        llm_message=None,
    )
    returned = ToolError.from_returned("t", {"success": False, "error": text})
    raised = ToolError.from_exception("t", RuntimeError(text))
    return [
        *_of_error(authored),
        *_of_error(returned),
        *_of_error(raised),
        redact_text(text),
    ]


def _exception_chain(s: str) -> list[str]:
    try:
        try:
            raise KeyError(s)
        except KeyError as inner:
            raise RuntimeError(f"wrapped {s}") from inner
    except RuntimeError as exc:
        notes = [f"note: {s}"]
        return [
            *_text(str(exc)),
            redact_text(str(exc.__cause__)),
            redacted_repr(exc),
            *map(redact_text, notes),
        ]


def _bytes(s: str) -> list[str]:
    raw = s.encode()
    return [
        *_of_value(raw, {"blob": raw, "more": [bytearray(raw)]}, ("blob",)),
        *_text(f"got {raw!r}"),
    ]


PLACES: dict[str, Callable[[str], list[str]]] = {
    "arg_key": _arg_key,
    "arg_value": _arg_value,
    "nested_list": _nested_list,
    "json_in_string": _json_in_string,
    "url_userinfo": lambda s: _text(f"cannot reach https://{s}@host.example/path"),
    "query": lambda s: _text(f"GET https://host.example/p?x=1&q={s}&y=2 failed"),
    "header": lambda s: _text(f"X-Custom: {s}\nAccept: */*"),
    "message": lambda s: _text(f"request failed with {s} as given"),
    "stack_line": lambda s: _text(f'  File "a.py", line 3, in f\n    client = Client("{s}")\n'),
    "local_var": lambda s: _text(f"config = {{'value': {s!r}, 'retries': 3}}"),
    "exception_chain": _exception_chain,
    "bytes": _bytes,
}
