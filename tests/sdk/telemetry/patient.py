"""Imported by a program, lets requests and the end of the process take a minute.

The clients of the program have every other bound of today. How long a process may really be held
is what ``test_delivery.py`` says of closing.
"""

from __future__ import annotations

from functools import partialmethod

from toolfault.telemetry import Client, Limits

_PATIENT = Limits(request_seconds=60.0, exit_seconds=60.0)
Client.__init__ = partialmethod(Client.__init__, limits=_PATIENT)  # type: ignore[assignment,method-assign]
