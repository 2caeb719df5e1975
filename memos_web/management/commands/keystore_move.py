"""Move the key store to another place while the server runs. Run it again if it was interrupted."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from governance.keys.places import POSTGRES_SCHEMES, Place, place_at
from governance.keys.services import rotating_key_store
from governance.management.base import DomainCommand
from memos_web.config import ConfigError, check_key_store_url
from memos_web.settings.base import CONFIG


class Command(DomainCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--to",
            required=True,
            help="postgresql://USER:PASSWORD@HOST/DATABASE, or the folder keys of the data directory",
        )

    def act(self, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        to = _choose_place(options["to"])
        moved = rotating_key_store().move(to)
        if moved is None:
            return {"moved": 0}, [f"the key store is in {to.name} already"]
        advice = (
            "MEMOS_KEY_STORE_URL to the new address"
            if to.address.startswith(POSTGRES_SCHEMES)
            else ("MEMOS_KEY_STORE_URL to nothing")
        )
        return {"moved": moved}, [
            f"moved {moved} keys to {to.name}, and running processes follow: "
            f"set {advice}, restart one after another, then remove the former place and its copies"
        ]


def _choose_place(text: str) -> Place:
    """Raises CommandError."""
    if text.startswith(POSTGRES_SCHEMES):
        try:
            databases = {"DATABASE_URL": CONFIG.database_url, "DATABASE_OWNER_URL": CONFIG.database_owner_url}
            check_key_store_url("--to", text, databases)
        except ConfigError as error:
            raise CommandError(str(error)) from error
        return place_at(text)
    path = settings.KEY_STORE_PATH
    if path.parent.resolve() != Path(text).resolve():
        raise CommandError(f"--to is {text}: name a postgresql:// address, or the folder {path.parent}")
    return place_at(path)
