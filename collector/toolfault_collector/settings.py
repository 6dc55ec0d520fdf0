"""Every setting of the server, each with the reason for its default.

Read from the environment (``TOOLFAULT_*``) unless given; `docs/configuration.md` is generated
from this class.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import Literal

import platformdirs
from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = ["Settings", "default_database_url"]

KIB = 1_024
MIB = 1_024 * KIB


def default_database_url() -> str:
    """Return the URL of the SQLite file in the user's data directory."""
    folder = platformdirs.user_data_path("toolfault", appauthor=False)
    return f"sqlite:///{folder / 'toolfault.db'}"


class Settings(BaseSettings):
    """The settings of one server process; they do not change while it runs."""

    model_config = SettingsConfigDict(
        env_prefix="TOOLFAULT_",
        # A variable that is set to nothing is not set: docker-compose passes those on.
        env_ignore_empty=True,
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    database_url: str = Field(default_factory=default_database_url, repr=False)
    """Where everything is stored: `sqlite:///FILE` or `postgresql://USER@HOST/NAME`. Default: an
    SQLite file in the user's data directory, so that a first start needs nothing."""

    events_url: str = Field(default="", repr=False)
    """Where pages read events from: `clickhousedb://USER@HOST/NAME`. Empty reads them from the
    database above, which is enough for some 10 million failures; either way that one accepts
    them."""

    events_password: str = Field(default="", repr=False)
    """Password of the address above, so that it need not stand in an address, which programs like
    to show."""

    outbox_mib: int = Field(default=1_024, ge=1)
    """Most MiB of changes that wait in the database above while ClickHouse is away. Beyond, they
    are forgotten, and everything is copied anew once it answers."""

    host: str = "127.0.0.1"
    """Address to listen on. Loopback, since nobody should be served before there is a user."""

    port: int = Field(default=8321, ge=0, le=65_535)
    """Port to listen on; 0 takes a free one and prints it."""

    trusted_proxies: str = "127.0.0.1,::1"
    """Addresses whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed: proxies that end TLS.
    This machine's own, since whoever sits there could read everything anyway."""

    migrate: bool = False
    """Migrate an older PostgreSQL schema at start. Off, since other processes may be using it; an
    SQLite file is always migrated, after a backup copy beside it."""

    synchronous: Literal["FULL", "NORMAL"] = "FULL"
    """SQLite only. `FULL`: an acknowledged event survives loss of power. `NORMAL`: the last
    commits may be lost with the power, but never by a crash of the process."""

    busy_seconds: float = Field(default=10.0, gt=0)
    """SQLite only. How long a writer waits for another process that holds the write lock (an
    import, a backup) before 503 is answered; longer than any of them holds it."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe log line written. Requests that went well are logged at `debug`: at 5,000
    events a second a line each would cost more than storing them."""

    max_body_bytes: int = Field(default=5 * MIB, ge=64 * KIB)
    """Bytes of one request as sent. A batch of 1,000 large events compresses to less; senders
    split what is refused with 413."""

    max_decoded_bytes: int = Field(default=20 * MIB, ge=64 * KIB)
    """Bytes of one request after decompression, counted while it streams: the memory one request
    can take. 20 MiB is what OTLP recommends."""

    max_events: int = Field(default=1_000, ge=1)
    """Events in one request: some 100 ms of storing, so that no sender holds up the others."""

    max_event_bytes: int = Field(default=256 * KIB, ge=4 * KIB, le=MIB)
    """Bytes of one event. A failure with every text at its limit has about 190 KiB."""

    head_timeout_seconds: float = Field(default=10.0, gt=0)
    """How long the head of a request may take to arrive, and how long a new connection may stay
    silent; for the same reason as the next."""

    body_timeout_seconds: float = Field(default=10.0, gt=0)
    """How long the body of a request may take to arrive; after that 408, so that slow senders do
    not collect connections."""

    stalled_timeout_seconds: float = Field(default=60.0, gt=0)
    """How long a client may stop reading a long answer before it is cut off: an export holds a
    snapshot of the database as long as it lasts."""

    queue_events: int = Field(default=5_000, ge=1_000)
    """Most events that may wait to be stored, at most half of them of one project; more are
    answered 503. So a request that is accepted is answered soon."""

    queue_bytes: int = Field(default=64 * MIB, ge=MIB)
    """Bytes waiting to be stored before 503 is answered; bounds the memory of the queue."""

    group_events: int = Field(default=2_000, ge=1)
    """Events stored in one transaction. More would make each wait longer than it saves."""

    quota_events_per_minute: int = Field(default=0, ge=0)
    """Events a minute that one project may send, through all collectors together, before 429 is
    answered; 0 sets no limit, since a project that fails a lot is the one to look at."""

    max_tools: int = Field(default=2_000, ge=1)
    """Different tools of one project; further ones are stored as `other`, and in no chain. Shops
    with hundreds of tools exist; thousands come from names made up by a model."""

    max_codes: int = Field(default=500, ge=1)
    """Different codes of one project; further ones are stored as `other`. The contract has 19."""

    max_arguments: int = Field(default=10_000, ge=1)
    """Different arguments that the failures of one project name, tool by tool; further ones are
    counted as `other`. Beyond the arguments tools have, these are names made up by a model."""

    retention_days: int = Field(default=0, ge=0)
    """Remove conversations that were received longer ago than this; 0 keeps everything, since only
    the owner of the data knows how long it is wanted."""

    retention_calls: int = Field(default=0, ge=0)
    """Remove the oldest conversations of a project beyond about so many calls; 0 sets no limit."""

    kept_rows: int = Field(default=1_000_000, ge=0)
    """Rows of counted answers that are kept in memory, so that a page over weeks costs what the
    last hours cost. The pages of a project put 800,000 there per million failures in 90 days;
    what has no room is counted anew each time."""

    trace_url: str = Field(default="", pattern=r"^(https?://\S+)?$")
    """Address of a trace in your tracing product, with `{trace_id}` and, if wanted, `{span_id}`:
    the ids of a failure then lead there. Empty shows them as text."""

    public_url: str = Field(default="", pattern=r"^(https?://\S+)?$")
    """Address at which people reach the dashboard; alerts then link to it, and `/mcp` takes
    requests by this name. Empty leaves links out: the server cannot know how it is reached."""

    alert_networks: str = Field(default="", pattern=r"^[0-9a-fA-F.:/, ]*$")
    """Private networks that the channels of alerts may reach, such as `10.0.0.0/8,127.0.0.1/32`.
    Empty refuses all of them: whoever makes a channel could otherwise send requests to machines
    that only this server reaches."""

    stop_seconds: float = Field(default=8.0, gt=0)
    """How long running requests may take to finish after SIGTERM; supervisors kill after 10."""

    @field_validator("alert_networks")
    @classmethod
    def _are_networks(cls, text: str) -> str:
        for each in filter(None, (part.strip() for part in text.split(","))):
            ip_network(each, strict=False)
        return text
