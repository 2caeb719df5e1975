"""Repeat, in a restored database, the erasures of data subjects that are newer than its backup."""

from typing import Any

from governance.management.base import DomainCommand
from vault.subjects.replaying import erasures_apply


class Command(DomainCommand):
    help = __doc__ or ""

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        erased = erasures_apply()
        return {"erased": erased}, [f"erased again: {erased} data subjects"]
