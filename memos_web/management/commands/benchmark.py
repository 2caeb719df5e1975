"""Measure speed or quality of a running server. Results are JSON files in benchmarks/results/."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from benchmarks.ablation import ablation, ablation_table
from benchmarks.answers import DATA, Answerer, answers, answers_table, judge_of
from benchmarks.authorization import Load as Access
from benchmarks.authorization import authorization, authorization_table
from benchmarks.client import BenchmarkError, Target, target_of
from benchmarks.clients import clients, clients_table
from benchmarks.databases import embedded_version, postgresql_version
from benchmarks.dates import dates, dates_table
from benchmarks.deidentification import HALVES, deidentification, deidentification_table
from benchmarks.duplicates import duplicates, duplicates_table
from benchmarks.exchange import exchange, exchange_table
from benchmarks.first_journey import first_journey, first_journey_table
from benchmarks.hostile_texts import hostile_texts_benchmark, hostile_texts_table
from benchmarks.ingest import Load, ingest, ingest_table
from benchmarks.kv import CONTEXTS, QUERIES, ROUNDS, kv, kv_table
from benchmarks.layers import layers, layers_table
from benchmarks.lifecycle import lifecycle, lifecycle_table
from benchmarks.lives import lives, lives_table
from benchmarks.nearest import nearest, nearest_table
from benchmarks.neighbour import Beside, neighbour, neighbour_table
from benchmarks.packs_search import packs_search, packs_search_table
from benchmarks.pages import Measuring, catalogue, catalogue_table, pages, pages_table
from benchmarks.report import RESULTS, Timing, refuse_unwritable, write
from benchmarks.restores import namespace_restore, namespace_restore_table
from benchmarks.retrieval import retrieval, retrieval_table
from benchmarks.scale import Growing, scale, scale_table
from benchmarks.search_latency import Asking, search_latency, search_latency_table
from benchmarks.start import start, start_table
from benchmarks.sweep import sweep, sweep_table
from benchmarks.watermark import watermark, watermark_table
from benchmarks.working_set import working_sets, working_sets_table
from benchmarks.year import year, year_table
from governance.management.base import InstalledCommand, OneLineCommand
from vault.vocabulary import EXTRACTIVE

Options = dict[str, Any]
Figures = dict[str, Any]


@dataclass(frozen=True)
class Benchmark:
    """A benchmark. run: measures and returns the figures; table: formats them as text; needs_server: it measures a
    running one."""

    run: Callable[[Target, Options], Figures]
    table: Callable[[Figures], str]
    needs_server: bool = True


BENCHMARKS = {
    "answers": Benchmark(lambda target, options: answers(target, options["data"], _answerer(options)), answers_table),
    "lives": Benchmark(lambda target, options: lives(target, options["lives"]), lives_table),
    "dates": Benchmark(lambda target, options: dates(target), dates_table),
    "first-journey": Benchmark(
        lambda target, options: first_journey(target, options["data"], options["conversation"]),
        first_journey_table,
    ),
    "retrieval": Benchmark(
        lambda target, options: retrieval(target, options["data"], options["mode"]),
        retrieval_table,
    ),
    "search-latency": Benchmark(
        lambda target, options: search_latency(
            target,
            Asking(
                options["cubes"],
                options["tenants"],
                options["queries"],
                options["hidden"],
                filtered=options["filtered"],
            ),
        ),
        search_latency_table,
    ),
    "nearest": Benchmark(
        lambda target, options: nearest(options["cubes"], options["queries"]),
        nearest_table,
    ),
    "neighbour": Benchmark(
        lambda target, options: neighbour(
            target, Beside(options["cubes"], options["clients"], options["rounds"], options["seconds"])
        ),
        neighbour_table,
    ),
    "layers": Benchmark(lambda target, options: layers(target, options["turns"], options["data"]), layers_table),
    "working-set": Benchmark(lambda target, options: working_sets(options["files"]), working_sets_table),
    "clients": Benchmark(lambda target, options: clients(target, options["adds"], options["searches"]), clients_table),
    "exchange": Benchmark(
        lambda target, options: exchange(target, tuple(options["sizes"]), options["profile"]), exchange_table
    ),
    "hostile-texts": Benchmark(lambda target, options: hostile_texts_benchmark(), hostile_texts_table),
    "ingest": Benchmark(
        lambda target, options: ingest(target, Load(options["cubes"], options["singles"], options["profile"])),
        ingest_table,
    ),
    "pages": Benchmark(
        lambda target, options: pages(Measuring(tuple(options["sizes"]), options["rounds"])),
        pages_table,
    ),
    "catalogue": Benchmark(lambda target, options: catalogue(options["packs"], options["rounds"]), catalogue_table),
    "packs-search": Benchmark(
        lambda target, options: packs_search(
            options["packs"], options["memories"], options["cubes"], options["queries"]
        ),
        packs_search_table,
    ),
    "watermark": Benchmark(
        lambda target, options: watermark(options["recipients"], options["trials"], options["marked"]), watermark_table
    ),
    "deidentification": Benchmark(
        lambda target, options: deidentification(
            options["templates"], options["dialogues"], options["half"], options["rounds"]
        ),
        deidentification_table,
        needs_server=False,
    ),
    "authorization": Benchmark(
        lambda target, options: authorization(target, Access(options["cubes"], options["queries"])),
        authorization_table,
    ),
    "namespace-restore": Benchmark(
        lambda target, options: namespace_restore(target, options["cubes"]), namespace_restore_table
    ),
    "lifecycle": Benchmark(lambda target, options: lifecycle(target, options["cubes"]), lifecycle_table),
    "duplicates": Benchmark(lambda target, options: duplicates(target, options["cubes"]), duplicates_table),
    "scale": Benchmark(
        lambda target, options: scale(target, Growing(options["cubes"], options["tenants"])), scale_table
    ),
    "year": Benchmark(
        lambda target, options: year(target, options["cubes"], options["days"], options["chart"]), year_table
    ),
    "kv": Benchmark(
        lambda target, options: kv(options["contexts"], options["queries"], options["rounds"]),
        kv_table,
        needs_server=False,
    ),
    "start": Benchmark(lambda target, options: start(options["rounds"]), start_table, needs_server=False),
    "ablation": Benchmark(lambda target, options: ablation(options["data"]), ablation_table),
    "sweep": Benchmark(lambda target, options: sweep(options["data"]), sweep_table),
}


def _answerer(options: Options) -> Answerer:
    judge = judge_of(options["judge_url"], options["judge_model"]) if options["judge_url"] else None
    most = options["questions"] or 0
    return Answerer(model=options["model"], judge=judge, most=most, named=options["named"])


def _answers_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, default=DATA, help="labelled conversations, ours or GVD's; default: our own"
    )
    parser.add_argument("--model", default=EXTRACTIVE, help="a model of the server; default: none")
    parser.add_argument("--named", action="store_true", help="GVD: people have a persona and sign their messages")
    parser.add_argument("--questions", type=_count, help="of each conversation, the first ones; default: all")
    parser.add_argument("--judge-url", default="", help="OpenAI-compatible API of a judge; its key is JUDGE_API_KEY")
    parser.add_argument("--judge-model", default="", help="the model that judges")


def _lives_parser(add: Callable[..., ArgumentParser]) -> ArgumentParser:
    parser = add("lives", help="what is kept and answered of lives told over four chats")
    parser.add_argument("--lives", type=Path, nargs="+", default=[], help="files of lives; default: all of ours")
    return parser


def _scale_parser(add: Callable[..., ArgumentParser]) -> ArgumentParser:
    parser = add("scale", help="how calls grow with the memories of a tenant and with the number of tenants")
    parser.add_argument("--cubes", type=_count, nargs="+", default=[10_000, 100_000], help="memories of a tenant")
    parser.add_argument("--tenants", type=_count, nargs="*", default=[1, 100], help="numbers of small tenants")
    return parser


def _working_set_parser(add: Callable[..., ArgumentParser]) -> ArgumentParser:
    parser = add("working-set", help="memories ready before a question, and the head that prompts share")
    parser.add_argument("--files", type=Path, nargs="+", required=True, help="LoCoMo's or GVD's")
    return parser


def _count(text: str) -> int:
    """Parse a whole number from 1."""
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r}: a number from 1 is needed")
    return int(text)


def _share(text: str) -> float:
    """Parse a share from 0 to below 1."""
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise ArgumentTypeError(f"{text!r}: a share from 0 to below 1 is needed, as in 0.9")
    return share


class Command(InstalledCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
        journey = names.add_parser(
            "first-journey", help="one conversation in through REST, every question searched: recall@10 and times"
        )
        journey.add_argument("--conversation", default="conv-26", help="sample id; default %(default)s")
        quality = names.add_parser(
            "retrieval", help="evidence recall beside BM25, exact cosine and mem0, on both halves"
        )
        quality.add_argument("--mode", default="hybrid", choices=["hybrid", "lexical", "dense", "graph"])
        replies = names.add_parser("answers", help="right, wrong and declined answers, on both halves")
        _answers_arguments(replies)
        without = names.add_parser("ablation", help="what each part of a score brings: evidence recall without it")
        around = names.add_parser(
            "sweep", help="evidence recall at k = 5 … 40, and with each weight halved and half more"
        )
        for command in (journey, quality, without, around):
            command.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
        latency = names.add_parser("search-latency", help="a search beside raw SQL, exact cosine and mem0")
        _latency_arguments(latency)
        by_vector = names.add_parser("nearest", help="what the vector index finds, beside comparing all vectors")
        by_vector.add_argument("--cubes", type=_count, default=10_000, help="of one tenant; default %(default)s")
        by_vector.add_argument("--queries", type=_count, default=100, help="of each kind; default %(default)s")
        beside = names.add_parser("neighbour", help="a quiet tenant's searches, alone and beside a busy tenant")
        _neighbour_arguments(beside)
        turning = names.add_parser("layers", help="the layers' work for a turn and for a context, by length of history")
        turning.add_argument("--turns", type=_count, nargs="+", default=[100, 1_000], help="lengths of histories")
        turning.add_argument("--data", type=Path, default=None, help="a LoCoMo file: contexts without each part, too")
        hostile = names.add_parser("hostile-texts", help="processor time of each function that reads a user's text")
        writing = names.add_parser("ingest", help="adding one, adding in bulk, and raw COPY of the same rows")
        _ingest_arguments(writing)
        access = names.add_parser("authorization", help="decisions a second; searches and lists with 0 … 10,000 grants")
        access.add_argument("--cubes", type=_count, default=20_000, help="half of them private; default %(default)s")
        access.add_argument("--queries", type=_count, default=200, help="default %(default)s")
        html = names.add_parser("pages", help="server time, queries and bytes of every page, and the first load")
        html.add_argument("--sizes", type=_count, nargs="+", default=[1_000, 100_000], help="memories of each tenant")
        html.add_argument("--rounds", type=_count, default=20, help="of each page; default %(default)s")
        store = names.add_parser("catalogue", help="server time, queries and bytes of the pages of the MemStore")
        store.add_argument("--packs", type=_count, default=5_000, help="of one publisher; default %(default)s")
        store.add_argument("--rounds", type=_count, default=20, help="of each page; default %(default)s")
        packed = names.add_parser("packs-search", help="a search with installed packs beside one without")
        _packs_search_arguments(packed)
        marks = names.add_parser("watermark", help="changed copies of a pack that still name their recipient")
        _watermark_arguments(marks)
        people = names.add_parser("deidentification", help="names and numbers of people that stay in anonymised texts")
        _deidentification_arguments(people)
        past = names.add_parser(
            "namespace-restore", help="a namespace restored as of a time, beside raw COPY of its rows"
        )
        past.add_argument("--cubes", type=_count, default=10_000, help="all changed since; default %(default)s")
        moving = names.add_parser("exchange", help="export and import: memories a second beside COPY, and peak memory")
        moving.add_argument("--sizes", type=_count, nargs="+", default=[10_000, 100_000], help="memories of a tenant")
        moving.add_argument("--profile", action="store_true", help="also say what both spend their time on")
        through = names.add_parser("clients", help="adds and searches through REST, our client, mem0's client and MCP")
        through.add_argument("--adds", type=_count, default=1_000, help="through each; default %(default)s")
        through.add_argument("--searches", type=_count, default=500, help="through each; default %(default)s")
        starting = names.add_parser("start", help="an installation's first and second start; needs no running server")
        starting.add_argument("--rounds", type=_count, default=3, help="installations; default %(default)s")
        for command in (
            names.add_parser("dates", help="the days that are stored of messages that name them"),
            starting,
            _kv_parser(names.add_parser),
            *_lifecycle_parsers(names.add_parser),
            through,
            moving,
            journey,
            quality,
            replies,
            _lives_parser(names.add_parser),
            without,
            around,
            latency,
            by_vector,
            beside,
            hostile,
            _working_set_parser(names.add_parser),
            _scale_parser(names.add_parser),
            turning,
            writing,
            access,
            html,
            store,
            packed,
            marks,
            people,
            past,
        ):
            command.add_argument("--first-run", type=Path, default=None, help="first-run.json of the server to measure")
            command.add_argument(
                "--results", type=Path, default=RESULTS, help="folder for the JSON; default %(default)s"
            )

    def execute(self, *args: Any, **options: Any) -> str | None:
        if BENCHMARKS[options["name"]].needs_server:
            return super().execute(*args, **options)
        return OneLineCommand.execute(self, *args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        first_run = options["first_run"] or settings.KEY_STORE_PATH.parents[1] / "first-run.json"
        benchmark = BENCHMARKS[options["name"]]
        try:
            refuse_unwritable(options["results"])
            target = target_of(first_run) if benchmark.needs_server else Target(url="", api_key="")
            figures = benchmark.run(target, options)
        except BenchmarkError as error:
            raise CommandError(str(error)) from error
        for name, value in figures.items():
            self._show(name, asdict(value) if isinstance(value, Timing) else value)
        self.stdout.write(f"\n{benchmark.table(figures)}\n")
        try:
            version = postgresql_version() if benchmark.needs_server else embedded_version()
            kept = write(options["name"], figures, options["results"], postgresql=version)
        except BenchmarkError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"kept in {kept}")

    def _show(self, name: str, value: Any) -> None:
        if not isinstance(value, dict):
            self.stdout.write(f"{name:20} {value}")
        elif any(isinstance(part, dict) for part in value.values()):
            for key, part in value.items():
                self._show(f"{name} {key}", part)
        else:
            self.stdout.write(f"{name:32} " + "  ".join(f"{key} {part}" for key, part in value.items()))


def _latency_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--cubes", type=_count, default=10_000, help="of all tenants together; default %(default)s")
    parser.add_argument("--tenants", type=_count, default=1, help="among which they are divided; default %(default)s")
    parser.add_argument("--queries", type=_count, default=500, help="default %(default)s")
    parser.add_argument("--hidden", type=_share, default=0.0, help="share that a second caller does not see, as in 0.9")
    parser.add_argument("--filtered", action="store_true", help="ask each question with each single filter, too")


def _neighbour_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--cubes", type=_count, default=10_000, help="of the busy tenant; default %(default)s")
    parser.add_argument("--clients", type=_count, default=8, help="of the busy tenant; default %(default)s")
    parser.add_argument("--rounds", type=_count, default=4, help="of each kind of load; default %(default)s")
    parser.add_argument("--seconds", type=_count, default=10, help="of a round; default %(default)s")


def _packs_search_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--packs", type=_count, default=20, help="that are mounted; default %(default)s")
    parser.add_argument("--memories", type=_count, default=1_000, help="of each pack; default %(default)s")
    parser.add_argument("--cubes", type=_count, default=10_000, help="own memories; default %(default)s")
    parser.add_argument("--queries", type=_count, default=300, help="default %(default)s")


def _ingest_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--cubes", type=_count, default=10_000, help="in bulk, for each number of clients")
    parser.add_argument("--singles", type=_count, default=300, help="added one by one; default %(default)s")
    parser.add_argument("--profile", action="store_true", help="also say what bulk adding spends its time on")


def _watermark_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--recipients", type=_count, default=1_000, help="default %(default)s")
    parser.add_argument("--trials", type=_count, default=200, help="leaked copies; default %(default)s")
    parser.add_argument("--marked", type=_count, nargs="+", default=[20, 40], help="marked sentences of a pack")


def _deidentification_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--templates", type=Path, required=True, help="a wheel of presidio-evaluator")
    parser.add_argument("--dialogues", type=Path, nargs="*", default=[], help="files as LoCoMo's, or of messages")
    parser.add_argument("--half", default="report", choices=list(HALVES), help="of templates; default %(default)s")
    parser.add_argument("--rounds", type=_count, default=10, help="sentences of each template; default %(default)s")


def _kv_parser(add_parser: Callable[..., ArgumentParser]) -> ArgumentParser:
    caches = add_parser("kv", help="first tokens with a context as text and as a cache, on MEMOS_LLM_ENGINE")
    caches.add_argument("--contexts", type=_count, nargs="+", default=CONTEXTS, help="tokens; default %(default)s")
    caches.add_argument("--queries", type=_count, nargs="+", default=QUERIES, help="tokens; default %(default)s")
    caches.add_argument("--rounds", type=_count, default=ROUNDS, help="of each; the fastest counts")
    return caches


def _lifecycle_parsers(add_parser: Callable[..., ArgumentParser]) -> list[ArgumentParser]:
    sweeping = add_parser("lifecycle", help="a sweep of which a tenth expire, beside one UPDATE of the rows")
    sweeping.add_argument("--cubes", type=_count, default=10_000, help="of one tenant; default %(default)s")
    twice = add_parser("duplicates", help="near-duplicates proposed by the job, beside comparing all vectors")
    twice.add_argument("--cubes", type=_count, default=100_000, help="of one tenant; default %(default)s")
    living = add_parser("year", help="a year of a tenant's memories in steps, with a sweep after each")
    living.add_argument("--cubes", type=_count, default=20_000, help="of one tenant; default %(default)s")
    living.add_argument("--days", type=_count, default=28, help="of one step; default %(default)s")
    living.add_argument("--chart", type=Path, required=True, help="the SVG to write")
    return [sweeping, twice, living]
