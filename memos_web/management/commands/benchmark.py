"""Measure a running server; results are kept as JSON in benchmarks/results/."""

from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from benchmarks.client import BenchmarkError, Target, target_of
from benchmarks.first_journey import first_journey
from benchmarks.report import Timing, write
from benchmarks.retrieval import retrieval

Run = Callable[[Target, dict[str, Any]], dict[str, Any]]
RUNS: dict[str, Run] = {
    "first-journey": lambda target, options: first_journey(target, options["data"], options["conversation"]),
    "retrieval": lambda target, options: retrieval(target, options["data"], options["mode"]),
}


class Command(BaseCommand):
    help = __doc__ or ""
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
        journey = names.add_parser(
            "first-journey", help="one conversation in through REST, every question searched: recall@10 and times"
        )
        journey.add_argument("--conversation", default="conv-26", help="sample id; default %(default)s")
        quality = names.add_parser("retrieval", help="evidence recall beside BM25 and exact cosine, on both halves")
        quality.add_argument("--mode", default="hybrid", choices=["hybrid", "lexical", "dense"])
        for one in (journey, quality):
            one.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
            one.add_argument("--first-run", type=Path, default=None, help="first-run.json of the server to measure")

    def handle(self, *args: Any, **options: Any) -> None:
        first_run = options["first_run"] or settings.KEY_STORE_PATH.parents[1] / "first-run.json"
        try:
            figures = RUNS[options["name"]](target_of(first_run), options)
        except BenchmarkError as error:
            raise CommandError(str(error)) from error
        for name, value in figures.items():
            self._show(name, asdict(value) if isinstance(value, Timing) else value)
        self.stdout.write(f"kept in {write(options['name'], figures)}")

    def _show(self, name: str, value: Any) -> None:
        if not isinstance(value, dict):
            self.stdout.write(f"{name:20} {value}")
        elif any(isinstance(part, dict) for part in value.values()):
            for key, part in value.items():
                self._show(f"{name} {key}", part)
        else:
            self.stdout.write(f"{name:32} " + "  ".join(f"{key} {part}" for key, part in value.items()))
