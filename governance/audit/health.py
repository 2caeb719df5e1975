"""Delays of sealing and signing over all tenants, in seconds only."""

import os
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection

from governance.audit.checkpoints import checkpoints_folder
from governance.database import no_tenant

LATE_SECONDS = 60.0  # beyond the time at which a seal or a checkpoint is due


@dataclass(frozen=True)
class AuditHealth:
    """The seconds that the oldest entry has waited for its seal, and the oldest seal for its checkpoint; 0 if none
    waits.
    """

    unsealed_seconds: float
    unsigned_seconds: float

    @property
    def is_sealing_late(self) -> bool:
        return self.unsealed_seconds > LATE_SECONDS

    @property
    def is_signing_late(self) -> bool:
        return self.unsigned_seconds > settings.AUDIT_CHECKPOINT_SECONDS + LATE_SECONDS


def audit_health() -> AuditHealth:
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT unsealed_seconds, unsigned_seconds FROM governance_audit_health()")
        return AuditHealth(*cursor.fetchone())


def can_write_checkpoints() -> bool:
    """Return whether this process can write a file of checkpoints."""
    folder = checkpoints_folder()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return all(_can_write(path) for path in (existing, *folder.glob("*")))


def _can_write(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
