"""Base of the commands: one JSON line on stdout with `--json`, all else on stderr."""

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from governance.actor import Actor
from governance.errors import DomainError, NotFound
from governance.tenants.selectors import tenant_id_by_slug
from governance.tenants.services import command_line_actor


class OneLineCommand(BaseCommand):
    """A parser that reports a wrong option in one line, like other errors."""

    requires_system_checks = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        self._called_from_command_line = False  # its parsers then raise CommandError, which manage.py prints
        return super().create_parser(prog_name, subcommand, **kwargs)


class InstalledCommand(OneLineCommand):
    """A command that needs an existing installation, which `up` makes."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        if settings.NO_INSTALLATION:
            raise CommandError(settings.NO_INSTALLATION)
        # A pool would wait ten seconds for a server that is down; a plain connection fails at once.
        connection.settings_dict["OPTIONS"].pop("pool", None)
        return super().execute(*args, **options)


class DomainCommand(InstalledCommand):
    """Base of the commands. Subclasses implement `act`, which returns the JSON reply and the lines for a person."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON line on standard output")

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            reply, lines = self.act(options)
        except DomainError as error:
            raise CommandError(_describe_error(error)) from error
        except (OperationalError, InterfaceError) as error:
            raise CommandError("the database does not answer as it should: is the product up?") from error
        except DatabaseError as error:
            reason = str(error).partition("\n")[0]
            raise CommandError(f"the database refused this ({reason}): is it migrated?") from error
        if options["json"]:
            self.stdout.write(json.dumps(reply))
            return
        for line in lines:
            self.stderr.write(line)


def actor_for(slug: str) -> Actor:
    """Return the command line as an actor of the tenant with this slug. Raises NotFound."""
    tenant_id = tenant_id_by_slug(slug)
    if tenant_id is None:
        raise NotFound(f"There is no tenant {slug}.")
    return command_line_actor(tenant_id)


def _describe_error(error: DomainError) -> str:
    faults = "; ".join(f"{fault.field}: {fault.message}" for fault in error.errors)
    return faults or error.detail
