"""Restore a backup into an empty installation, verify every row, and repeat later erasures of data subjects."""

import os
from argparse import ArgumentParser
from contextlib import ExitStack
from typing import Any

from django.core.management.base import CommandError

from governance.management.base import OneLineCommand
from memos_web.backup.manifest import BackupError
from memos_web.backup.places import place_of
from memos_web.backup.restoration import restore, verify
from memos_web.embedded.errors import StartError
from memos_web.settings.base import CONFIG


class Command(OneLineCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("place", help="what `backup` wrote: a folder, or s3://BUCKET/PREFIX")
        parser.add_argument("--keys", default="", help="a copy of the key store, where the data directory has none")
        parser.add_argument(
            "--verify",
            action="store_true",
            help="load it into a PostgreSQL of its own, compare every row, remove it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        os.umask(0o077)
        os.environ["MEMOS_DATA_DIR"] = str(CONFIG.data_dir)
        try:
            act = verify if options["verify"] else restore
            with ExitStack() as stack:
                keys = stack.enter_context(place_of(CONFIG, options["keys"]).fetched()) if options["keys"] else None
                manifest = act(CONFIG, place_of(CONFIG, options["place"]), keys=keys)
        except (BackupError, StartError) as error:
            raise CommandError(str(error)) from error
        rows = sum(table.rows for table in manifest.tables.values())
        done = "verified" if options["verify"] else "restored"
        self.stderr.write(f"{done} {rows} rows of {len(manifest.tables)} tables as of {manifest.at}")
