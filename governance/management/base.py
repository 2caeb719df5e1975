"""Commands of the law: one JSON line on stdout with `--json`, all else on stderr; one line and exit 1 on failure."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from governance.actor import Actor
from governance.errors import DomainError, NotFound
from governance.tenants.selectors import tenant_id_by_slug
from governance.tenants.services import command_line_actor


class LawCommand(BaseCommand):
    """Subclasses say what to do in `act`, which returns the JSON reply and the lines for a person."""

    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON line on standard output")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            reply, lines = self.act(options)
        except DomainError as error:
            raise CommandError(error.detail) from error
        except DatabaseError as error:
            raise CommandError("the database does not answer as it should: is the product up, and migrated?") from error
        if options["json"]:
            self.stdout.write(json.dumps(reply))
            return
        for line in lines:
            self.stderr.write(line)


def actor_for(slug: str) -> Actor:
    """The command line, acting in the tenant with this slug. Raises NotFound."""
    tenant_id = tenant_id_by_slug(slug)
    if tenant_id is None:
        raise NotFound(f"There is no tenant {slug}.")
    return command_line_actor(tenant_id)
