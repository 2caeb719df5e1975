"""Check the search index and the versions of tenants, as jobs. Missing and outdated index entries are repaired."""

from argparse import ArgumentParser
from typing import Any

from governance.jobs.services import job_create
from governance.management.base import DomainCommand, actor_for
from governance.tenants.selectors import tenants_all
from governance.tenants.services import command_line_actor
from governance.vocabulary import Topic


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("--tenant", help="slug")
        whose.add_argument("--all", action="store_true", help="every tenant")
        parser.add_argument("--count", action="store_true", help="report problems and change nothing")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        if options["tenant"]:
            actors = [actor_for(options["tenant"])]
        else:
            actors = [command_line_actor(tenant_id) for _, tenant_id in tenants_all()]
        settings = {"repair": not options["count"]}
        ids = [str(job_create(actor=actor, kind=Topic.INDEX_CHECK, settings=settings).id) for actor in actors]
        return {"jobs": ids}, [f"job {job_id} started" for job_id in ids] or ["there is no tenant"]
