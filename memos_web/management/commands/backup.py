"""Save the database, its files and a hash of every row to a new folder or to a bucket, while the server runs."""

import os
import signal
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from governance.management.base import OneLineCommand
from memos_web.backup.dump import COPIES, backup_make, keys_copy
from memos_web.backup.manifest import BackupError
from memos_web.backup.places import place_of
from memos_web.installation import missing
from memos_web.settings.base import CONFIG


class Command(OneLineCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("place", help="a new folder, or s3://BUCKET/PREFIX; with --keys, the place of the copies")
        parser.add_argument(
            "--keys", action="store_true", help=f"copy the key store alone; the newest {COPIES} copies stay"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if reason := missing(CONFIG):
            raise CommandError(reason)
        os.umask(0o077)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # and nothing half done is left
        try:
            place = place_of(CONFIG, options["place"])
            if options["keys"]:
                self.stderr.write(f"copied the key store to {keys_copy(CONFIG, place)}")
                return
            manifest = backup_make(CONFIG, place)
        except BackupError as error:
            raise CommandError(str(error)) from error
        rows = sum(table.rows for table in manifest.tables.values())
        self.stderr.write(f"saved {rows} rows of {len(manifest.tables)} tables to {place.name}, as of {manifest.at}")
