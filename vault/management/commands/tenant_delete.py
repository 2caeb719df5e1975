"""Delete an organisation with all its data, after a grace period during which the deletion can be cancelled."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any
from uuid import UUID

from governance.management.base import DomainCommand, actor_for
from governance.tenants.services import command_line_actor
from vault.deletion.services import deletion_cancel, deletion_get, deletion_preview, deletion_receipt, deletion_request


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--tenant", help="slug")
        what.add_argument("--receipt", type=UUID, metavar="ID", help="print the receipt of a deleted organisation")
        parser.add_argument("--confirm", default="", metavar="SLUG", help="the slug again; without it, only count")
        parser.add_argument("--cancel", action="store_true", help="cancel the deletion that waits")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        if options["receipt"]:
            receipt = deletion_receipt(actor=command_line_actor(options["receipt"]))
            return receipt, [json.dumps(receipt, indent=1)]
        actor = actor_for(options["tenant"])
        if options["cancel"]:
            job = deletion_cancel(actor=actor)
            return {"job": str(job.id)}, ["the deletion is cancelled"]
        if options["confirm"]:
            job = deletion_request(actor=actor, slug=options["confirm"])
            at = deletion_get(actor=actor).delete_at
            when = at.isoformat() if at else ""
            return {"job": str(job.id), "delete_at": when}, [f"{options['tenant']} is deleted at {when}"]
        preview = deletion_preview(actor=actor)
        holds = [f"{hold.kind} {hold.id}" for hold in preview.holds]
        counts = preview.counts
        lines = [
            f"would delete {counts.memories} memories, {counts.versions} versions, {counts.turns} turns of "
            f"conversations and {preview.members} members; confirm with --confirm {options['tenant']}",
            *(f"refused by {hold}" for hold in holds),
        ]
        return {"counts": asdict(counts), "members": preview.members, "holds": holds}, lines
