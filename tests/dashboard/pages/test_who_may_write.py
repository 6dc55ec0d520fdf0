"""Who may change what, written out once more beside the product's own table."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from tests.dashboard.pages.conftest import open_browser

from toolfault_dashboard.access.policy import Role

ROLES: tuple[Role, ...] = ("viewer", "developer", "operator", "admin")
FORM = {"Origin": "http://127.0.0.1:8321", "Content-Type": "application/x-www-form-urlencoded"}
LEAST = {
    "/views": "viewer",
    "/views/delete": "viewer",
    "/changes": "developer",
    "/kinds": "developer",
    "/fix-next": "developer",
    "/fix-next/remove": "developer",
    "/alerts": "developer",
    "/alerts/remove": "developer",
    "/alerts/snooze": "developer",
    "/settings/channels": "admin",
    "/settings/channels/remove": "admin",
    "/settings/channels/test": "admin",
    "/start": "admin",
    "/start/sessions": "admin",
    "/settings/keys": "admin",
    "/settings/keys/revoke": "admin",
    "/settings/project": "admin",
    "/settings/soft-rules": "admin",
    "/settings/people": "admin",
    "/settings/people/role": "admin",
}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_write_what_it_should(own_engine: Engine, role: Role):
    """Each form is refused to every role below the one it is for, and to no other."""
    for browser in open_browser(own_engine, role=role):
        refused = {
            path
            for path in LEAST
            if browser.client.post(path, headers=FORM, follow_redirects=False).status_code == 403
        }

    rank = ROLES.index(role)
    assert refused == {path for path, least in LEAST.items() if ROLES.index(least) > rank}
