"""Where messages go: a signed webhook, or whatever `apprise` knows (e-mail, Slack, Teams ...).

A channel's address is a secret: it is stored, used, and repeated nowhere, not in errors either.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import secrets
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from toolfault_collector.clock import SECOND_US, format_time
from toolfault_dashboard.alerts.addresses import (
    Networks,
    RefusedAddress,
    RefusedFile,
    check_host,
    guarded,
)

__all__ = ["Channel", "Outgoing", "check_url", "new_secret", "send", "signature"]

ChannelKind = Literal["webhook", "apprise"]

CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 10.0
_LONGEST_URL: Final = 2_048
_LONGEST_TEXT: Final = 16_384  # characters of a message that a webhook is sent
# These show something on the machine of the server, or write into its log or files.
_LOCAL: Final = frozenset(
    {"blink1", "dbus", "gio", "glib", "gnome", "kde", "macosx", "qt", "syslog", "vapid", "windows"}
)


# These connect from threads of their own, where `addresses.guarded` sees no address.
_THREADED: Final = frozenset({"mqtt", "mqtts", "xmpp", "xmpps"})


@dataclass(frozen=True, slots=True)
class Channel:
    """Where messages go; what is secret of it appears in no representation."""

    id: int
    project_id: int
    name: str
    kind: ChannelKind
    url: str = field(repr=False)
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message on its way; ``at`` is when it was decided, in microseconds."""

    message_id: str
    event: str
    project: str
    rule: str
    subject: str
    title: str
    body: str
    query: str
    link: str
    at: int


def new_secret() -> str:
    """Return a secret to sign with, as Standard Webhooks writes one: 24 random bytes."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}"


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a webhook: HMAC-SHA256 over id, timestamp and body.

    Args:
        secret: As `new_secret` gives it.
        message_id: The ``webhook-id``: the same whenever the message is sent again.
        timestamp: Seconds since the epoch, the ``webhook-timestamp``.
        body: The bytes that are sent.

    Source: Standard Webhooks 1.0.0, "Signature scheme" (symmetric, v1).
    """
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def check_url(kind: str, url: str, allowed: Networks) -> ChannelKind:
    """Refuse what cannot be a channel; the text of an error never repeats *url*.

    Raises:
        ValueError: It is no address of its kind, or one on a private network.
    """
    if not url or len(url) > _LONGEST_URL or not url.isprintable():
        raise ValueError(f"Give the channel an address of at most {_LONGEST_URL} characters.")
    host: object
    if kind == "webhook":
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            host = None
        if not host or parts.scheme not in ("http", "https"):
            raise ValueError("Write the address of a webhook as https://host/path.")
    elif kind == "apprise":
        with guarded(allowed):
            host = _host_of(_plugin(url))
    else:
        raise ValueError("Choose what sort of channel it is.")
    try:
        if isinstance(host, str):
            check_host(host, allowed)
    except RefusedAddress as error:
        raise ValueError(str(error)) from None
    return "webhook" if kind == "webhook" else "apprise"


def send(channel: Channel, message: Outgoing, allowed: Networks, *, now: int) -> str | None:
    """Send *message*; return None when it was taken, else why not, in a sentence without secrets.

    Args:
        channel: Where to.
        message: What.
        allowed: Private networks that may be reached.
        now: Microseconds since the epoch.
    """
    with guarded(allowed) as guard:
        try:
            if channel.kind == "webhook":
                problem = _post(channel, message, now // SECOND_US)
            else:
                problem = _notify(channel.url, message)
        except Exception as error:  # noqa: BLE001 - of any library; the text may quote a secret
            problem = f"It could not be reached ({type(error).__name__})."
    return str(guard.refused) if guard.refused else problem


def _post(channel: Channel, message: Outgoing, timestamp: int) -> str | None:
    from urllib3 import PoolManager, Timeout

    body = _document(message)
    headers = {
        "content-type": "application/json",
        "user-agent": "toolfault",
        "webhook-id": message.message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(channel.secret, message.message_id, timestamp, body),
    }
    with PoolManager() as pool:
        answer = pool.request(
            "POST",
            channel.url,
            body=body,
            headers=headers,
            timeout=Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
            retries=False,
            redirect=False,
            preload_content=False,  # what it says is nobody's business, and may be long
        )
        status = answer.status
        answer.close()
    return None if 200 <= status < 300 else f"It answered with status {status}."


def _document(message: Outgoing) -> bytes:
    data = {
        "project": message.project,
        "rule": message.rule,
        "subject": message.subject,
        "title": message.title,
        "text": message.body[:_LONGEST_TEXT],
        "query": message.query,
        "link": message.link,
    }
    document = {
        "type": f"alert.{message.event}",
        "timestamp": format_time(message.at),
        "data": data,
    }
    return json.dumps(document, ensure_ascii=False).encode()


def _plugin(url: str) -> Any:
    """Return what `apprise` makes of *url*.

    Raises:
        ValueError: It knows no such service, or one whose connections cannot be checked.
    """
    scheme = url.partition(":")[0].strip().lower()
    if scheme in _LOCAL:
        raise ValueError("That would show or keep messages on the server's own machine.")
    if scheme in _THREADED:
        raise ValueError(
            "This service connects from a thread of its own, where its addresses cannot be checked."
            " Choose another service, or a webhook."
        )
    import apprise

    # Its log quotes addresses, which are secret.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    found = apprise.Apprise.instantiate(url)
    if found is None:
        raise ValueError(
            "Write the address as apprise does, for example slack://TOKEN_A/TOKEN_B/TOKEN_C; see"
            " the documentation of apprise for each service."
        )
    if _names_file(found):
        raise ValueError(str(RefusedFile()))
    return found


def _names_file(thing: Any, depth: int = 2) -> bool:
    """Say whether a service, or what it keeps its keys with, was told of a file."""
    from apprise import AppriseAttachment

    for each in vars(thing).values():
        if isinstance(each, AppriseAttachment):
            if len(each):
                return True
        elif (
            depth
            and type(each).__module__.startswith("apprise.")
            and hasattr(each, "__dict__")
            and _names_file(each, depth - 1)
        ):
            return True
    return False


def _host_of(plugin: Any) -> object:
    """Return the host that the address names; None where the service decides on it.

    In the addresses of such services the place of the host is taken by a part of the secret.
    """
    named = any("{host}" in template for template in plugin.templates)
    return getattr(plugin, "host", None) if named else None


def _notify(url: str, message: Outgoing) -> str | None:
    plugin = _plugin(url)
    kind = {"firing": "warning", "resolved": "success"}.get(message.event, "info")
    body = f"{message.body}\n{message.link}" if message.link else message.body
    # Not through `Apprise`, which may use threads of its own (see `addresses.guarded`).
    taken = plugin.notify(title=message.title, body=body, notify_type=kind, body_format="text")
    return None if taken else "The service refused the message, or could not be reached."
