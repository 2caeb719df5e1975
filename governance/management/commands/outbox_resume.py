"""Retry the dead letters of a tenant: jobs that failed too often."""

from argparse import ArgumentParser
from typing import Any

from governance.management.base import DomainCommand, actor_for
from governance.outbox.services import events_resume


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--tenant", required=True, help="slug")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        resumed = events_resume(actor=actor_for(options["tenant"]))
        return {"resumed": resumed}, [f"{resumed} jobs are retried"]
