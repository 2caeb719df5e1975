"""`manage.py up`: everything that one machine needs, under one process."""

import os
import sys
from argparse import ArgumentParser

from django.conf import settings

from governance.management.base import OneLineCommand
from memos_web.settings.base import CONFIG


class Command(OneLineCommand):
    help = "Start PostgreSQL and Redis (unless DATABASE_URL and REDIS_URL are given), migrate, and serve until Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.epilog = "MEMOS_HOST, MEMOS_PORT and MEMOS_DATA_DIR say where; the README lists every setting."

    def handle(self, *args: object, **options: object) -> None:
        # The supervisor needs nothing of Django: it takes this process over and gives its memory back.
        os.environ["MEMOS_DATA_DIR"] = str(CONFIG.data_dir)
        os.chdir(settings.BASE_DIR)
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", "memos_web.embedded"])
