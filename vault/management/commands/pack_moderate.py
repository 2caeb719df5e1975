"""Hide a pack of the MemStore, ban it, or show it again."""

from argparse import ArgumentParser
from typing import Any

from governance.management.base import DomainCommand, actor_for
from vault.store.moderation import Decision, publication_moderate


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("pack", metavar="ORGANISATION/PACK")
        parser.add_argument(
            "decision",
            choices=list(Decision),
            help="hide: nobody finds it, subscribers keep it; ban: it goes from subscribers, too; show: neither",
        )
        parser.add_argument("--reason", required=True, help="the publisher reads it")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        publisher, _, name = options["pack"].partition("/")
        row = publication_moderate(
            actor=actor_for(publisher), name=name, decision=Decision(options["decision"]), reason=options["reason"]
        )
        return {"publication": str(row.id), "state": row.state}, [f"{options['pack']} is {row.state}"]
