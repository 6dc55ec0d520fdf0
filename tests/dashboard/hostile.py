"""Texts that try to be more than text, and events that carry one wherever a text can stand."""

from __future__ import annotations

from typing import Any

from tests.dashboard.generated import NOW
from tests.factories import event_id

from toolfault_collector.clock import MINUTE_US, SECOND_US, format_time

__all__ = ["HARMLESS", "PAYLOADS", "hostile_events", "three_hundred"]

HARMLESS = "plain"
PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</pre><iframe src=javascript:alert(1)>",
    "javascript:alert(1)",
    "{{7*7}}",
    "{% raw %}<b>x</b>",
    "${alert(1)}",
    "<!--<script>-->",
    "]]><script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<a href=//evil.example>x</a>",
    "<style>*{display:none}</style>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content=0>",
    "<form action=//evil.example><input>",
    "\u202egnp.exe\u202c",
    "\u2066hidden\u2069",
    "a\u200bb\u200fc",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "`-alert(1)-`",
    "\\u003cscript\\u003e",
    '<math><mi xlink:href="data:x,<script>alert(1)</script>">',
    "<details open ontoggle=alert(1)>",
    "onmouseover=alert(1) x=",
    '" autofocus onfocus=alert(1) "',
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
)


def _error(text: str) -> dict[str, Any]:
    issue = {
        "field": text,
        "code": "wrong_type",
        "message": text,
        "expected": text,
        "received": text,
        "received_type": text,
        "type": text,
        "near_miss": ["alias"],
    }
    return {
        "code": "wrong_type",
        "category": "parameter",
        "audience": "llm",
        "reason": text,
        "kind": text[:32],
        "phase": text[:32],
        "field": text,
        "expected": text,
        "received": text,
        "received_type": text,
        "snippet": text,
        "retry_hint": text,
        "retry_context": {text: text},
        "issues": [issue],
        "issues_total": 1,
        "retryable": True,
        "renderings": {"user": text, "llm": text, "system": text},
        "exception": {"type": text, "module": text, "message": text, "traceback": text},
    }


def hostile_events(text: str) -> list[dict[str, Any]]:
    """Two failures, a success and a change that carry *text* wherever a text can stand."""
    shared = {
        "type": "tool_call",
        "session_id": f"c-{text}",
        "tool": text,
        "tool_requested": f"{text}!",
        "agent": text,
        "model": text,
        "provider": text,
        "environment": text,
        "release": text,
        "variant": f"trial={text}",
        "user": text,
        "run_id": text,
        "trace_id": text,
        "span_id": text,
        "turn": None,
        "duration_ms": 5.0,
        "tags": {"tag": text},
        "args_diff": [{"path": text, "change": text, "from_type": text, "to_type": text}],
    }
    calls = [
        {
            **shared,
            "event_id": event_id(),
            "call_id": f"{text}{number}",
            "occurred_at": format_time(NOW - MINUTE_US + number * SECOND_US),
            "seq": number,
            "success": number == 2,
            **({} if number == 2 else {"error": _error(text)}),
        }
        for number in range(3)
    ]
    for call in calls:
        call.pop("turn")
    change = {
        "type": "change",
        "event_id": event_id(),
        "occurred_at": format_time(NOW - MINUTE_US),
        "label": text,
        "tool": text,
    }
    return [*calls, change]


def three_hundred() -> list[str]:
    """Three hundred payloads: every way out of a text, with every element that runs a script."""
    ways_out = (
        "",
        '">',
        "'>",
        "</title>",
        "</textarea>",
        "</script>",
        "-->",
        "]]>",
        "</style>",
        "&#62;",
    )
    elements = (
        "<script>alert(1)</script>",
        "<script src=//evil.example/x.js></script>",
        "<img src=x onerror=alert(1)>",
        "<svg onload=alert(1)>",
        "<svg><animate onbegin=alert(1) attributeName=x></svg>",
        "<body onload=alert(1)>",
        "<iframe srcdoc='<script>alert(1)</script>'>",
        "<iframe src=javascript:alert(1)>",
        "<video><source onerror=alert(1)></video>",
        "<audio src=x onerror=alert(1)>",
        "<object data=javascript:alert(1)>",
        "<embed src=javascript:alert(1)>",
        "<details open ontoggle=alert(1)>",
        "<input autofocus onfocus=alert(1)>",
        "<select autofocus onfocus=alert(1)>",
        "<marquee onstart=alert(1)>",
        "<a href=javascript:alert(1)>x</a>",
        "<a href='java&#115;cript:alert(1)'>x</a>",
        "<form action=//evil.example><button>x</button></form>",
        "<button formaction=javascript:alert(1)>x</button>",
        "<math><maction actiontype=statusline xlink:href=javascript:alert(1)>x</maction></math>",
        "<link rel=stylesheet href=//evil.example/x.css>",
        "<style>@import'//evil.example/x.css'</style>",
        "<meta http-equiv=refresh content='0;url=//evil.example'>",
        "<base href=//evil.example/>",
        "<template><script>alert(1)</script></template>",
        "<div style=background:url(javascript:alert(1))>x</div>",
        "<x onclick=alert(1)>x</x>",
    )
    made = [way + element for way in ways_out for element in elements]
    return list(dict.fromkeys([*made, *PAYLOADS]))[:300]
