"""Repeat, in a restored database, the erasures of data subjects and tenants that are newer than its backup."""

from typing import Any

from governance.management.base import DomainCommand
from vault.deletion.deletion_replay import deletions_apply
from vault.subjects.erasure_replay import erasures_apply


class Command(DomainCommand):
    help = __doc__ or ""

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        deleted = deletions_apply()
        erased = erasures_apply()
        lines = [f"erased again: {erased} data subjects, {deleted} tenants"]
        return {"erased": erased, "deleted": deleted}, lines
