"""Verify the audit log against its seals and signed checkpoints.

Exit code 1: the log is broken; the first bad entry is named. 2: nothing was verified, because an option or the database
cannot be used.
"""

import os
import sys
import time
from argparse import ArgumentParser
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management import CommandError

from governance.audit.checkpoints import checkpoints_outside, find_torn_files
from governance.audit.verification import Verification, log_verify_whole, refuse_strangers
from governance.audit.verifier import Checkpoint, Unreadable, checkpoints_read
from governance.errors import Invalid, NotFound
from governance.management.base import DomainCommand
from governance.tenants.selectors import tenant_id_by_slug, tenants_all

MOST_PROCESSES = 4  # a connection each


@dataclass(frozen=True)
class Checked:
    """One tenant's audit log, and the result of its verification. torn: files whose last line is incomplete."""

    slug: str
    found: Verification
    outside: int
    torn: list[Path]
    seconds: float


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--tenant", help="slug; without it, every tenant")
        parser.add_argument("--checkpoint", type=Path, help="a file of checkpoints that you kept; needs --tenant")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        if options["checkpoint"] and not options["tenant"]:
            raise Invalid("--checkpoint is of one tenant: name it with --tenant.")
        try:
            saved = _read_checkpoints(options["checkpoint"])
            checked = [_check(slug, tenant_id, saved) for slug, tenant_id in _tenants(options["tenant"])]
        except (Unreadable, OSError, UnicodeDecodeError) as error:
            raise Invalid(f"The checkpoint cannot be used: {error}") from error
        self.intact = all(tenant.found.intact for tenant in checked)
        return {"intact": self.intact, "tenants": [_json(tenant) for tenant in checked]}, [
            _line(tenant) for tenant in checked
        ]

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            super().handle(*args, **options)
        except CommandError as error:
            raise CommandError(str(error), returncode=2) from error
        if not self.intact:
            sys.exit(1)


def _tenants(slug: str | None) -> list[tuple[str, UUID]]:
    if slug is None:
        return tenants_all()
    tenant_id = tenant_id_by_slug(slug)
    if tenant_id is None:
        raise NotFound(f"There is no tenant {slug}.")
    return [(slug, tenant_id)]


def _read_checkpoints(file: Path | None) -> list[Checkpoint]:
    found = checkpoints_read(file.read_text(encoding="utf-8")) if file else []
    if file and not found:
        raise Unreadable("there is none in the file")
    return found


def _check(slug: str, tenant_id: UUID, saved: list[Checkpoint]) -> Checked:
    started = time.monotonic()
    refuse_strangers(tenant_id, saved)
    outside = checkpoints_outside(tenant_id)
    found = log_verify_whole(
        tenant_id, checkpoints=[*saved, *outside], processes=min(os.cpu_count() or 1, MOST_PROCESSES)
    )
    return Checked(slug, found, len(saved) + len(outside), find_torn_files(tenant_id), time.monotonic() - started)


def _json(tenant: Checked) -> dict[str, Any]:
    found = tenant.found
    return {
        "tenant": tenant.slug,
        "intact": found.intact,
        "seals": found.seals,
        "checkpoint": found.checkpoint,
        "checkpoints_outside": tenant.outside,
        "incomplete_files": [str(path) for path in tenant.torn],
        "rows_per_second": round(found.seals / tenant.seconds),
        "first_bad": asdict(found.fault) if found.fault else None,
    }


def _line(tenant: Checked) -> str:
    found = tenant.found
    speed = f"{found.seals / tenant.seconds:.0f} rows/s"
    if found.fault:
        entry = f", entry {found.fault.entry_id}" if found.fault.entry_id else ""
        return f"{tenant.slug}: BROKEN at seal {found.fault.seq}{entry}: {found.fault.detail} ({speed})"
    signed = (
        f"signed up to seal {found.checkpoint}" if tenant.outside else "no checkpoint outside the database to compare"
    )
    torn = "".join(
        f"\n{path}: the last line is incomplete; the next checkpoint repairs the file" for path in tenant.torn
    )
    return f"{tenant.slug}: intact, {found.seals} seals, {signed} ({speed}){torn}"
