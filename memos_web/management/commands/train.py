"""Train a model of the product on labelled data, with a running server, and store its weights in the source tree."""

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from benchmarks.client import BenchmarkError, target_of
from benchmarks.training import train_answers
from governance.management.base import InstalledCommand
from vault.reader.rules.answer_model import FILE


def _weighed_file(text: str) -> tuple[Path, float]:
    """Parse FILE or FILE:WEIGHT."""
    name, _, weight = text.rpartition(":")
    try:
        return (Path(name), float(weight)) if name else (Path(weight), 1.0)
    except ValueError:
        raise ArgumentTypeError(f"{text!r}: a file is needed, or a file and its weight, as in answers.json:2") from None


class Command(InstalledCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
        answers = names.add_parser("answers", help="the model that decides whether a passage answers a question")
        answers.add_argument(
            "--data", type=_weighed_file, nargs="+", required=True, help="files as of `benchmark answers`, with weights"
        )
        answers.add_argument("--first-run", type=Path, default=None, help="first-run.json of the server to use")

    def handle(self, *args: Any, **options: Any) -> None:
        first_run = options["first_run"] or settings.KEY_STORE_PATH.parents[1] / "first-run.json"
        try:
            model = train_answers(target_of(first_run), dict(options["data"]))
        except BenchmarkError as error:
            raise CommandError(str(error)) from error
        for name, value in model["weights"].items():
            self.stdout.write(f"{name:16} {value:8.4f}")
        self.stdout.write(f"{model['passages']} passages of {model['questions']} questions; kept in {FILE.name}")
