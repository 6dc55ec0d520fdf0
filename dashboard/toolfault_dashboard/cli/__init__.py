"""The ``toolfault`` command."""

from toolfault_dashboard.cli.app import main

__all__ = ["main"]
