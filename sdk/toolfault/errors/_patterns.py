"""What a secret looks like: by its own shape, by the name of its key, and by what surrounds it.

Nothing here changes a text; `_redaction` does, with these patterns and rules.
"""

from __future__ import annotations

import binascii
import re
import unicodedata
from itertools import pairwise

# Patterns of credentials that are recognisable by their own shape.

# Not inside a word, unless an escape (`\n`) or a percent code (`%3D`) ends right before it.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2}))"

_PREFIXED = (
    # OpenAI, Anthropic, OpenRouter, Langfuse; a digit tells `sk-live1234` from `sk-learn`.
    r"(?:sk|pk)-(?=[A-Za-z_\-]{0,64}[0-9])[A-Za-z0-9_\-]{8,}",
    # Stripe, Clerk, ElevenLabs, PlanetScale, Duffel, Shippo.
    r"(?:sk|rk|pk|whsec|pscale|duffel|shippo)_(?=[A-Za-z_]{0,32}[0-9])[A-Za-z0-9_.\-]{10,}",
    r"gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}",
    r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas)-[A-Za-z0-9_.\-]{12,}",
    r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9\-]{8,}|xapp-[A-Za-z0-9\-]{8,}",
    r"(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AIPA|ANPA|ANVA|APKA|AROA)[A-Z0-9]{12,}",
    r"AIza[A-Za-z0-9_\-]{30,}|GOCSPX-[A-Za-z0-9_\-]{16,}|ya29\.[A-Za-z0-9_\-]{16,}",
    r"1//0[A-Za-z0-9_\-]{20,}",
    r"SG\.[A-Za-z0-9_\-]{12,64}\.[A-Za-z0-9_\-]{12,64}",
    r"(?:SK|key-)[0-9a-f]{32}|dapi[0-9a-f]{32}",
    r"npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_\-]{16,}|rubygems_[0-9a-f]{20,}|oy2[a-z0-9]{43}",
    r"d(?:op|oo|or)_v1_[0-9a-f]{20,}|dckr_pat_[A-Za-z0-9_\-]{16,}|dp\.[a-z]{2,5}\.[\w]{16,}",
    r"hf_[A-Za-z]{20,}|hf_[A-Za-z0-9]{20,}|api_org_[A-Za-z0-9]{20,}",
    (
        r"(?:gsk|nvapi|pplx|xai|tvly|jina|csk|pcsk|fw|r8|e2b|lsv2|sbp|nfp|napi)[_\-]"
        r"(?=[A-Za-z_\-]{0,64}[0-9])[A-Za-z0-9_\-]{16,}"
    ),
    r"sh(?:pat|pca|ppa|pss|pua)_[0-9a-fA-F]{16,}|sq0(?:atp|csp|idp)-[A-Za-z0-9_\-]{16,}",
    r"EAA[A-Za-z0-9]{28,}|access_token\$[a-z]+\$[A-Za-z0-9$]{16,}",
    r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}|ntn_[A-Za-z0-9]{20,}|secret_[A-Za-z0-9]{32,}",
    r"pat[A-Za-z0-9]{14}\.[0-9a-f]{32,}|pat-(?:na|eu)[0-9]-[0-9a-f\-]{20,}",
    r"ATATT3[A-Za-z0-9_\-=]{20,}|sl\.[A-Za-z0-9_\-]{60,}|NRA[KA]-[A-Z0-9]{20,}",
    r"glsa_[A-Za-z0-9]{20,}(?:_[0-9a-fA-F]{8})?|glc_[A-Za-z0-9+/=]{20,}",
    r"hv[sbr]\.[A-Za-z0-9_\-]{20,}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|pul-[0-9a-f]{40}",
    r"HRKU-[A-Za-z0-9_\-]{20,}|fo1_[\w\-]{20,}|CCIPAT_[\w]{16,}|sgp_[\w]{20,}|pnu_\w{20,}",
    r"xkeysib-[0-9a-f]{20,}|tfp_[A-Za-z0-9_\-.]{20,}|EZ[AT]K[A-Za-z0-9]{30,}|LTAI[A-Za-z0-9]{12,}",
    r"AGE-SECRET-KEY-1[0-9A-Z]{30,}|dt0[a-z]01\.[A-Z0-9]{20,}\.[A-Z0-9]{40,}",
    r"\$(?:2[aby]|argon2(?:id|i|d)|5|6|scrypt|pbkdf2-sha\d+)\$[A-Za-z0-9./+=$,]{20,}",
    r"A{20,26}(?!A)(?=[A-Za-z%]{0,40}[0-9])[A-Za-z0-9%]{30,}",
)

TOKEN = re.compile(_START + "(?:" + "|".join(_PREFIXED) + ")")
"""A credential that starts with its issuer's prefix."""

GUARDED: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (guard, re.compile(pattern))
    for guard, pattern in (
        # JSON web token (RFC 7519): two or three dot-separated base64url parts.
        (
            "eyJ",
            _START.replace("A-Za-z0-9]", r"A-Za-z0-9_\-]", 1)
            + r"eyJ[A-Za-z0-9_\-]{6,}\.[A-Za-z0-9_\-]{4,}(?:\.[A-Za-z0-9_\-]*)*",
        ),
        ("hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+\-]+"),
        ("/api/webhooks/", r"/api/webhooks/\d+/[\w\-]+"),
        ("outlook.office.com/webhook", r"outlook\.office\.com/webhook[^\s\"']+"),
        # Azure AD client secret.
        ("Q~", r"(?<![A-Za-z0-9_~.\-])[A-Za-z0-9_~.\-]{3,4}Q~[A-Za-z0-9_~.\-]{20,}"),
        # Mailchimp.
        ("-us", r"(?<![0-9a-f])[0-9a-f]{32}-us\d{1,2}(?!\d)"),
        # Terraform Cloud.
        (".atlasv1.", r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-=]{20,}"),
        # Telegram and Discord bots.
        (":AA", r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_\-]{30,}"),
        (
            ".",
            r"(?<![\w\-])[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,}",
        ),
        # `curl -u user:password`.
        ("-u", r"(?<=-u )[^\s:]{1,64}:[^\s]+|(?<=--user )[^\s:]{1,64}:[^\s]+"),
    )
)
"""(literal that must occur, pattern): the literal keeps ordinary text off the pattern."""

# `Bearer x` (RFC 6750), `Basic x` (RFC 7617): what follows is judged by `is_credential`.
AUTH_SCHEME = re.compile(
    r"(?i)(?<![A-Za-z0-9])(bearer|basic)((?:\s|%20|\+){1,3})([A-Za-z0-9\-._~+/=%]{4,})"
)

CHECKED = (
    # Payment cards, grouped or not; confirmed by the Luhn sum (ISO/IEC 7812-1).
    (
        "luhn",
        re.compile(
            r"(?<![\w.\-])(?:(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|6(?:011|5\d\d))(?:[ \-]?\d{4}){3}"
            r"|3[47]\d\d[ \-]?\d{6}[ \-]?\d{5})(?![\w\-])"
        ),
    ),
    # Bank account numbers, confirmed by mod 97 (ISO 13616).
    (
        "iban",
        re.compile(
            r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?"
            r"(?![A-Za-z0-9])"
        ),
    ),
    # US social security numbers (ranges never issued are left alone).
    (
        "ssn",
        re.compile(r"(?<![\w\-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w\-])"),
    ),
)
"""(name of the check, pattern) for shapes that need arithmetic to be told from plain numbers."""

# AWS secret access keys: 40 characters of base64, told from paths and hashes by their mix.
MIXED = re.compile(r"(?:(?<![A-Za-z0-9/+_.\-])|(?<=://))[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_\-])")


# Arithmetic and statistics that tell credentials from plain numbers, paths and words.

_DIGITS = re.compile(r"\D")
_BASE64_TEXT = re.compile(rb"[\x20-\x7e]+:[\x20-\x7e]*$")


def confirmed(check: str, text: str) -> bool:
    """Whether *text*, found by the pattern of *check*, really is what it looks like."""
    if check == "luhn":
        return _luhn(_DIGITS.sub("", text))
    if check == "iban":
        return _iban(text.replace(" ", ""))
    if check == "mixed":
        return _mixed(text)
    return True


def _luhn(digits: str) -> bool:
    """The check sum of payment cards (ISO/IEC 7812-1, annex B)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit)
        if place % 2:
            number = number * 2 - 9 if number > 4 else number * 2
        total += number
    return total % 10 == 0


def _iban(text: str) -> bool:
    """The check of account numbers: rearranged and read in base 36, modulo 97 is 1 (ISO 13616)."""
    if not 15 <= len(text) <= 34:
        return False
    return int("".join(str(int(c, 36)) for c in text[4:] + text[:4])) % 97 == 1


def _mixed(text: str) -> bool:
    """Whether 40 characters are a random base64 key rather than a path, a name or a hash."""
    digits = sum(c.isdigit() for c in text)
    upper = sum(c.isupper() for c in text)
    lower = sum(c.islower() for c in text)
    if digits < 2 or upper < 4 or lower < 4:
        return False
    # Names change case where words begin; random text changes class about every other letter.
    changes = sum(_kind(a) != _kind(b) for a, b in pairwise(text))
    return changes >= 16 and len(set(text)) >= 20


def _kind(character: str) -> int:
    if character.isdigit():
        return 0
    return 1 if character.isupper() else 2


def is_credential(scheme: str, value: str) -> bool:
    """Whether *value* after `Bearer` or `Basic` is a credential and not the next word."""
    value = value.rstrip(".=")
    if scheme == "basic":
        try:
            raw = binascii.a2b_base64(value + "=" * (-len(value) % 4))
        except ValueError:
            return False
        return _BASE64_TEXT.match(raw) is not None
    return "." in value or len(value) >= 20 or any(c.isdigit() for c in value)


def is_random(value: str) -> bool:
    """Whether *value* looks generated: hexadecimal, or letters of both cases and digits."""
    if all(c in "0123456789abcdefABCDEF-" for c in value):
        return len(value) >= 32
    digits = sum(c.isdigit() for c in value)
    return digits >= 3 and any(c.isupper() for c in value) and any(c.islower() for c in value)


# Deciding by its name whether a value is a secret.

_ANYWHERE = frozenset(
    {
        "password",
        "passwords",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "secrets",
        "credential",
        "credentials",
        "apikey",
        "apikeys",
        "authorization",
        "jwt",
        "jwts",
    }
)
_LAST = frozenset(
    {
        "token",
        "auth",
        "cookie",
        "cookies",
        "bearer",
        "otp",
        "ssn",
        "cvv",
        # The same names written as one word.
        "accesstoken",
        "apitoken",
        "authtoken",
        "bearertoken",
        "idtoken",
        "refreshtoken",
        "sessionid",
        "sessiontoken",
        "jsessionid",
        "phpsessid",
    }
)
_ADJACENT = frozenset(
    {
        ("api", "key"),
        ("api", "keys"),
        ("access", "key"),
        ("access", "keys"),
        ("private", "key"),
        ("private", "keys"),
        ("secret", "key"),
        ("session", "id"),
        ("session", "key"),
    }
)
_ENDINGS = ("password", "passwd", "passphrase", "apikey", "secretkey", "accesskey", "privatekey")

# Acronym before a capitalised word, capitalised or lower word, acronym; digits only separate.
_WORD = re.compile("[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_LONGEST_KEY = 256


def key_words(key: str) -> tuple[str, ...]:
    """The lower-case words of *key*: `X-Api-Key` and `xApiKey` are `("x", "api", "key")`."""
    key = key[:_LONGEST_KEY]
    if not key.isascii():
        key = unicodedata.normalize("NFKC", key)
    return tuple(word.lower() for word in _WORD.findall(key))


def names_secret(words: tuple[str, ...]) -> bool:
    """Whether a key of these *words* names a secret.

    `max_tokens`, `token_limit`, `cookie_profile`, `author` and `bypass` do not;
    `apiKey`, `X-Api-Key`, `client_secret`, `access_token`, `cookies` and `auth` do.
    """
    if not words:
        return False
    if words[-1] in _LAST or not _ANYWHERE.isdisjoint(words):
        return True
    if any(word.endswith(_ENDINGS) for word in words):
        return True
    return any(pair in _ADJACENT for pair in pairwise(words))


# Telling a secret value from prose, code and placeholders that follow a secret key.

# Words that follow a key in prose, and type names that follow it in signatures.
_PROSE_WORDS = """a all already an and any are argument at bad be blank but can cannot changed
    characters check contains could default denied did disabled does empty enabled error exceeded
    expected expired expires failed failure field for forbidden format found from given has have
    if in incorrect input invalid is it its length limit malformed match may mismatch missing must
    need needs no none not null of off ok on only optional or parameter permission please provide
    rejected required requires revoked should some string that the this to too true false type
    unauthorized undefined unexpected unknown unset unsupported use valid value values was were
    when with wrong you your
    str int float bool bytes dict list tuple set object number integer boolean array any secretstr
    optional[str] literal union self cls config settings eof identifier"""
_PROSE = frozenset(_PROSE_WORDS.split())
_SENTENCE = re.compile(
    r"(?i)(?:this (?:field|value)|field |string (?:should|too)|input should|value |ensure |must |"
    r"should |is |not a |not |required|missing|invalid|expected|unexpected parameter|too )"
)
# A schema printed where a value could stand: {"type": "string"}.
_SCHEMA = re.compile(r"type[\"']?\s*:\s*[\"']?(?:string|number|integer|boolean|object|array|null)")
_CODE = re.compile(
    r"[A-Za-z_][\w.]*[(\[]|(?:self|cls|os|config|settings|args|kwargs|env|process)\.[\w.]+$"
)
_PLACEHOLDER = re.compile(
    r"[*•x.\-]{3,}$|<[\w \-]*>|\$?\{[\w.]*\}|\$[A-Z_]+$|%s$|%\(\w+\)s$|\[REDACTED\]|\.\.\.|…|"
    r"\((?:string|str|number|int|integer|bool|boolean|object|array|any)\)|(?i:your)[_\- ]|"
    r"(?i:bearer|basic|token) (?:\$?\{|<|%s|\[REDACTED\])"
)
_DIGIT = re.compile(r"\d")
_WEAK_WORDS = frozenset({"token", "auth", "cookie", "cookies", "bearer", "sessionid"})
_WEAK_PAIRS = frozenset({("session", "id"), ("session", "key")})
# `Unexpected token: x` is about a token of a language.
_LANGUAGE = ("nexpected", "nvalid", "llegal", "nrecognized", "nknown", "ext", "urrent", "revious")


def is_weak_key(key: str) -> bool:
    """Whether *key* is also a word of ordinary errors: `token`, `auth`, `cookie`, `session id`."""
    words = key_words(key)
    return (len(words) == 1 and words[0] in _WEAK_WORDS) or words in _WEAK_PAIRS


def is_sentence(value: object) -> bool:
    """Whether JSON *value* under a secret key is a remark about it, or its schema."""
    if type(value) is str:
        return " " in value and _SENTENCE.match(value) is not None
    if type(value) is list:
        return bool(value) and all(is_sentence(item) for item in value)
    return type(value) is dict and _SCHEMA.match(f"type: {value.get('type')}") is not None


def reads_as_prose(value: str) -> bool:
    """Whether the inside of quotes or brackets is a remark, a schema or a placeholder."""
    inner = value.strip("\"' ")
    if not inner or _PLACEHOLDER.match(inner) or _SENTENCE.match(inner) or _SCHEMA.match(inner):
        return True
    return inner.lower() in _PROSE


def is_value(value: str, *, key: str, before: str, sep: str, quoted: bool) -> bool:
    """Whether *value*, written without quotes, is the secret of *key*.

    Args:
        value: The word after the key.
        key: The secret key.
        before: The text before the key.
        sep: What stands between key and value.
        quoted: Whether the key stands in quotes: then this is data, not prose.
    """
    plain = value.strip(".!?:`*\\").lower()
    if not plain or plain in _PROSE or _PLACEHOLDER.match(value):
        return False
    if quoted:
        # Numbers, booleans and null are never redacted by key.
        return not plain.replace(".", "", 1).lstrip("-").isdigit()
    if "\n" in sep or ("=" in sep and (_CODE.match(value) or _repeats(value, key))):
        return False
    return not is_weak_key(key) or is_weak_value(value, before=before, sep=sep)


def _repeats(value: str, key: str) -> bool:
    """Whether an assignment hands on a variable of the same name: `password=password`."""
    return value.strip("(),;") == key.rpartition(".")[2]


def is_weak_value(value: str, *, before: str, sep: str) -> bool:
    """Whether what follows a weak key looks like a credential rather than like the next word."""
    has_digit = _DIGIT.search(value) is not None
    if before.rstrip().endswith(_LANGUAGE):
        return len(value) >= 20 and has_digit
    if value.isdigit() and len(value) < 6:
        return False
    if not sep.endswith(" "):
        return True
    mixed = not (value.islower() or value.istitle() or value.isupper())
    return has_digit or len(value) >= 20 or mixed
