"""`manage.py up`: runs all processes of a single-machine installation under one process."""

import os
import sys
from argparse import ArgumentParser

from governance.management.base import OneLineCommand
from memos_web.settings.base import BASE_DIR


class Command(OneLineCommand):
    help = "Start PostgreSQL and Redis (unless DATABASE_URL and REDIS_URL are given), migrate, and serve until Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.epilog = "MEMOS_HOST, MEMOS_PORT and MEMOS_DATA_DIR say where; the README lists every setting."

    def handle(self, *args: object, **options: object) -> None:
        # Reached only with options of Django; without them manage.py starts the supervisor before Django.
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, str(BASE_DIR / "manage.py"), "up"])
