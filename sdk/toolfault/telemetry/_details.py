"""What is worked out only for events that are sent whole.

Loaded with the first of them: JSON, a hash and the texts of errors are not needed to count
successes, and importing them would double the cost of ``init``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolfault.telemetry._arguments import attempt
from toolfault.telemetry._encode import ATTEMPT
from toolfault.telemetry._otel import active_span, span_ids
from toolfault.telemetry._say import debug
from toolfault.telemetry._sealed import seal

if TYPE_CHECKING:
    from toolfault.errors import ToolError
    from toolfault.telemetry._conversations import Chain

__all__ = ["Details"]


class Details:
    """Adds to an event what its arguments, its error and the active span tell.

    Args:
        secret: Key of argument fingerprints.
        capture_values: Whether values of arguments may travel.
    """

    def __init__(self, secret: bytes, *, capture_values: bool) -> None:
        self._secret = secret
        self._capture_values = capture_values

    def add_arguments(self, event: dict[str, Any], chain: Chain | None, arguments: object) -> int:
        """Put the arguments aside in the event and return the bytes they take in memory."""
        event[ATTEMPT], size = attempt(arguments, chain, self._secret)
        return size

    def add_error(
        self, event: dict[str, Any], error: ToolError, arguments: object, *, adapter_failed: bool
    ) -> int:
        """Put the failure aside in the event and return the bytes it takes in memory."""
        compared = event.get(ATTEMPT)
        sealed = seal(
            error,
            arguments,
            adapter_failed=adapter_failed,
            capture_values=self._capture_values,
            copy=compared.arguments if compared is not None and compared.is_whole else None,
        )
        event["error"] = sealed
        # The result the host got names its event, so that people can find it.
        error.event_id = event["event_id"]
        return sealed.size

    def add_trace(self, event: dict[str, Any], error: ToolError | None) -> None:
        """Add the ids of the active span, and tell the span the code of the error."""
        try:
            span = active_span()
            if span is None:
                return
            ids = span_ids(span)
            if ids is not None:
                event["trace_id"], event["span_id"] = ids
            if error is not None:
                span.set_attribute("error.type", str(error.code))
        except Exception:  # noqa: BLE001 - a span of the host may be of any make
            debug("no trace ids")
