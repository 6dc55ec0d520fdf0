"""Patterns of credentials that are recognisable by their own shape.

Sources: the published token formats of the issuers, as collected by the rule sets of gitleaks,
detect-secrets, Sentry Relay and Logfire. Every pattern is linear: a fixed prefix, then bounded or
trailing character classes, and a look-behind that forbids starting inside its own class.
"""

from __future__ import annotations

import re

__all__ = ["AUTH_SCHEME", "CHECKED", "GUARDED", "MIXED", "TOKEN"]

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
