"""What `docs/alerts.md` says of thresholds, defaults and limits is what the code does."""

from __future__ import annotations

from pathlib import Path

from toolfault_collector.clock import DAY_US, MINUTE_US
from toolfault_dashboard.alerts import (
    channels,
    evaluation,
    figures,
    hours,
    lease,
    preview,
    rules,
    service,
    store,
)
from toolfault_dashboard.alerts.rules import CONDITIONS, Condition

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "alerts.md").read_text("utf-8")
FLAT = " ".join(TEXT.split())


def _row(condition: Condition) -> str:
    rated = condition.kind in ("above", "below") and condition.name != "sender_drops"
    threshold = f"{condition.threshold:.0%}" if condition.share else f"{condition.threshold:g}"
    least = f"{condition.least} {condition.unit}"
    cells = (
        threshold if rated else "–",
        "–" if condition.kind in ("none", "digest") else least,
        condition.window,
    )
    return " | ".join(cells)


def test_every_condition_stands_in_the_table_with_its_defaults() -> None:
    """Name, threshold, floor and window of each, and no condition besides."""
    lines = [line for line in TEXT.splitlines() if line.startswith("| `")]
    table = {line.split("`")[1]: line for line in lines[: len(CONDITIONS)]}
    assert set(table) == set(CONDITIONS)
    for name, line in table.items():
        assert line.endswith(f"| {_row(CONDITIONS[name])} |"), name


def test_every_limit_is_the_one_that_is_written_down() -> None:
    """Each number of the page, in the words around it."""
    minutes = rules.HOLD_US // MINUTE_US
    for words in (
        f"for {minutes} minutes",
        "once a minute" if rules.PERIOD_US == MINUTE_US else "?",
        f"A window is {', '.join(list(rules.WINDOWS)[:-1])} or {list(rules.WINDOWS)[-1]}",
        "a tenth of the threshold" if evaluation.MARGIN == 0.1 else "?",
        f"More than {evaluation.MOST_NOTICES} kinds",
        f"At most {figures.MOST_KINDS} kinds",
        f"in the {figures.BEFORE_US // DAY_US} days before it",
        f"at {hours.DIGEST_HOUR}:00",
        f"a lease of {lease.LEASE_SECONDS:.0f} seconds",
        f"in the last {preview.DAYS} days",
        f"On a page it has {preview.SECONDS:.0f} seconds",
        f"may take {service.RULE_SECONDS:.0f} seconds (a digest {service.DIGEST_SECONDS:.0f})",
        f"every {service.INTERVAL_SECONDS:.0f} seconds for what there is to do",
        f"at most {store.MOST_RULES} rules and {store.MOST_CHANNELS} channels",
        f"at most {store.MOST_PER_MINUTE} messages a minute",
        f"gone for {store.FORGOTTEN_US // DAY_US} days",
        f"in the history for {store.KEPT_US // DAY_US} days",
        f"{channels.CONNECT_SECONDS:.0f} seconds to connect and {channels.READ_SECONDS:.0f} to",
    ):
        assert words in FLAT, words
