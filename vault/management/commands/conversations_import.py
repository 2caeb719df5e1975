"""Import a MemoryOS user's data folder or a LoCoMo file as memories and layers of a member."""

from argparse import ArgumentParser
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.core.management.base import CommandError

from governance.actor import CallContext
from governance.management.base import DomainCommand, actor_for
from governance.tenants.principals import reload_actor
from governance.tenants.selectors import member_by_email
from governance.vocabulary import Channel, PrincipalKind
from vault.layers.conversation_import import conversations_import
from vault.layers.formats import locomo_read, memoryos_read

MOST_NAMED = 100  # places of what was left out
FORMATS = {"memoryos": memoryos_read, "locomo": locomo_read}


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("path", type=Path, help="folder of one MemoryOS user, or a LoCoMo file")
        parser.add_argument("--format", required=True, choices=sorted(FORMATS))
        parser.add_argument("--tenant", required=True, help="slug")
        parser.add_argument("--member", required=True, help="e-mail address of whose memories they become")
        parser.add_argument("--persona", default=None, help="id or name; default: the member's first persona")
        parser.add_argument("--namespace", default=None, help="path; default: the member's private one")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        if not options["path"].exists():
            raise CommandError(f"{options['path']} does not exist")
        system = actor_for(options["tenant"])
        member = member_by_email(actor=system, email=options["member"])
        actor = reload_actor(
            tenant_id=system.tenant_id,
            kind=PrincipalKind.MEMBER,
            principal_id=member.id,
            request_id=f"import-{uuid4()}",
            context=CallContext(channel=Channel.COMMAND_LINE),
        )
        report = conversations_import(
            actor=actor,
            imported=FORMATS[options["format"]](options["path"]),
            persona=options["persona"],
            namespace=options["namespace"],
        )
        counts = {name: count for name, count in asdict(report).items() if name != "left_out"}
        places = [{"place": place, "reason": reason} for place, reason in report.left_out[:MOST_NAMED]]
        reasons = dict(Counter(reason for _, reason in report.left_out))
        lines = [f"{name:10} {count}" for name, count in counts.items()]
        lines += [f"left out   {count} ({reason})" for reason, count in sorted(reasons.items())]
        return {**counts, "left_out": reasons, "places": places}, lines
