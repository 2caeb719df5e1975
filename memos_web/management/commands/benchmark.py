"""Measure a running server; results are kept as JSON in benchmarks/results/."""

from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from benchmarks.client import BenchmarkError, target_of
from benchmarks.first_journey import first_journey
from benchmarks.report import Timing, write


class Command(BaseCommand):
    help = __doc__ or ""
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
        journey = names.add_parser(
            "first-journey", help="one conversation in through REST, every question searched: recall@10 and times"
        )
        journey.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
        journey.add_argument("--conversation", default="conv-26", help="sample id; default %(default)s")
        journey.add_argument("--first-run", type=Path, default=None, help="first-run.json of the server to measure")

    def handle(self, *args: Any, **options: Any) -> None:
        first_run = options["first_run"] or settings.KEY_STORE_PATH.parents[1] / "first-run.json"
        try:
            figures = first_journey(target_of(first_run), options["data"], options["conversation"])
        except BenchmarkError as error:
            raise CommandError(str(error)) from error
        for name, value in figures.items():
            shown = ", ".join(f"{key} {part}" for key, part in asdict(value).items()) if isinstance(value, Timing) else value
            self.stdout.write(f"{name:18} {shown}")
        self.stdout.write(f"kept in {write(options['name'], figures)}")
