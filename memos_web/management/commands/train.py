"""Train a model of the product on labelled data, with a running server, and store its weights in the source tree."""

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from benchmarks.calibration_training import lines, train_calibration
from benchmarks.client import BenchmarkError, target_of
from benchmarks.ranking_training import train_ranking
from benchmarks.training import train_answers
from governance.management.base import InstalledCommand
from vault.reader.rules import answer_model
from vault.retrieval import learned_weights


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
        ranking = names.add_parser("ranking", help="the learned weights of the search, on a file in LoCoMo's layout")
        ranking.add_argument("--data", type=Path, required=True, help="as of `benchmark retrieval`")
        scale = names.add_parser("calibration", help="the scale of cosines, for each embedder and language")
        scale.add_argument("--data", type=Path, required=True, help="labelled conversations in both languages")

    def handle(self, *args: Any, **options: Any) -> None:
        train = {
            "ranking": self._train_ranking,
            "answers": self._train_answers,
            "calibration": self._train_calibration,
        }
        try:
            train[options["name"]](options)
        except BenchmarkError as error:
            raise CommandError(str(error)) from error

    def _train_ranking(self, options: dict[str, Any]) -> None:
        model = train_ranking(options["data"])
        self._write_weights(model["weights"])
        for name, figures in model["recall of conversations left out"].items():
            self.stdout.write(f"{name:16} " + "  ".join(f"{depth} {value}" for depth, value in figures.items()))
        self.stdout.write(f"{model['questions']} questions; kept in {learned_weights.FILE.name}")

    def _train_calibration(self, options: dict[str, Any]) -> None:
        for line in lines(train_calibration(options["data"])):
            self.stdout.write(line)

    def _train_answers(self, options: dict[str, Any]) -> None:
        first_run = options["first_run"] or settings.KEY_STORE_PATH.parents[1] / "first-run.json"
        model = train_answers(target_of(first_run), dict(options["data"]))
        self._write_weights(model["weights"])
        self.stdout.write(
            f"{model['passages']} passages of {model['questions']} questions; kept in {answer_model.FILE.name}"
        )

    def _write_weights(self, weights: dict[str, float]) -> None:
        for name, value in weights.items():
            self.stdout.write(f"{name:16} {value:8.4f}")
