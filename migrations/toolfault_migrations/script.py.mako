"""${message}.

Revision: ${up_revision}
Follows: ${down_revision | comma,n}
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """Say what this revision adds."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Undo it, keeping every row that can be kept."""
    ${downgrades if downgrades else "pass"}
