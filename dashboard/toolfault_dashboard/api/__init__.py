"""The JSON API ``/api/v1``: every answer of the dashboard for programs, read-only."""

from toolfault_dashboard.api.app import create_api

__all__ = ["create_api"]
