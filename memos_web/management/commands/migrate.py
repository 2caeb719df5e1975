"""Django's `migrate` without the URL checks: importing all pages for them took a fifth of its time."""

from typing import Any

from django.core.checks import Tags
from django.core.management.base import CommandError
from django.core.management.commands import migrate

from governance.errors import Unavailable
from governance.tenants.startup_check import refuse_old_server


class Command(migrate.Command):
    help = "Bring the tables of the database up to date, as their owner."
    requires_system_checks = (Tags.database, Tags.models)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            refuse_old_server()
        except Unavailable as error:
            raise CommandError(error.detail) from error
        super().handle(*args, **options)
