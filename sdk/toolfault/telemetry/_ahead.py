"""What the first failure needs, loaded before it comes.

Composing a failure takes modules and compiled patterns that counting successes does not, some
twenty milliseconds the first time. The sender thread starts with the first call that is captured,
which is a success in almost every agent; it loads them then, so that no caller waits for them.

Nothing is loaded, and no thread started, by ``init``: a host that forks its workers after it would
fork with a thread running, which Python 3.12 and later warn about.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

__all__ = ["STEPS"]


def _describing() -> None:
    import toolfault.coerce
    import toolfault.tools._rejection  # noqa: F401 - loaded, not used


def _logging() -> None:
    import logging  # noqa: F401 - loaded, not used

    import toolfault.tools._log  # noqa: F401


def _foreign_errors() -> None:
    if "pydantic" in sys.modules:
        import toolfault.errors  # noqa: F401 - loaded, not used


def _rehearsal() -> None:
    """Compose a failure of nobody's and throw it away: whatever is loaded on demand is then."""
    from toolfault.errors import Issue, ToolError
    from toolfault.telemetry._details import Details
    from toolfault.telemetry._sealed import error_member, seal

    issue = Issue("n", "wrong_type", "", expected="integer", received="'a'", received_type="str")
    error = ToolError.from_issues("toolfault", [issue])
    error_member(seal(error, None, adapter_failed=False, capture_values=False))
    Details(b"key", capture_values=False).add_arguments({}, None, {"n": "a"})


STEPS: tuple[Callable[[], None], ...] = (_describing, _logging, _foreign_errors, _rehearsal)
"""In the order of a failing call; each takes some milliseconds."""
