"""Measures searches next to a lower bound and other systems, on the same rows in the same run.

Every system gets each question in turn, so that other load on the machine affects all alike.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import psycopg

from benchmarks.client import BenchmarkError, Client, Target
from benchmarks.databases import app_connection, vacuum_and_analyse
from benchmarks.floor import COSINE, Asked, Scene, hybrid, scene_of
from benchmarks.floor import ask as ask_floor
from benchmarks.locomo import Turn
from benchmarks.peers import Mem0, mem0, mem0_version, why_no_mem0
from benchmarks.report import Timing, timing
from benchmarks.synthetic import conversation, questions
from benchmarks.tables import markdown
from benchmarks.tenants import Caller, await_jobs, cubes_in, drafts_of, fill_tenant, owner_of, reader_of
from governance.actor import Actor
from governance.errors import Conflict
from governance.personas.services import PersonaDraft, persona_create
from vault.content.drafts import CubeDraft
from vault.embeddings.vector_index import DEFAULT_MODEL
from vault.providers.registry import embedder
from vault.vocabulary import Layer

SEED = 20_260_101
WARM_UP = 20  # uncounted questions at the start
HTTP_MS = 3.0  # added to twice the floor for HTTP in the goal
OPEN = "/open"
PERSONAS = 10
Ask = Callable[[str], Asked]


@dataclass(frozen=True)
class Asking:
    """The parameters of a run. cubes: of all tenants together; hidden: the share that a second caller cannot see."""

    cubes: int
    tenants: int = 1
    queries: int = 500
    hidden: float = 0.0
    top_k: int = 10
    filtered: bool = False  # ask each question with each of FILTERS, too

    @property
    def warm_up(self) -> int:
        """The number of warm-up questions: at least one per tenant, which opens its connection."""
        return max(self.tenants, min(WARM_UP, self.queries))


@dataclass(frozen=True)
class Place:
    """A tenant with its loaded conversation."""

    slug: str
    owner: Caller
    turns: list[Turn]
    open_cubes: int  # those that the reader sees


@dataclass
class Measured:
    """The times and numbers of rows of one system, one per question."""

    ms: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    service_ms: list[float] = field(default_factory=list)

    def after(self, warm_up: int) -> "Measured":
        return Measured(self.ms[warm_up:], self.rows[warm_up:], self.service_ms[warm_up:])

    def figures(self, expected: int) -> dict[str, Any]:
        time = timing(self.ms)
        own = {"took_ms p50": timing(self.service_ms).p50} if self.service_ms else {}
        full = sum(rows == expected for rows in self.rows)
        return {"p50": time.p50, "p95": time.p95, **own, "rows": min(self.rows), "full": f"{full}/{len(self.rows)}"}


class Ours:
    """Runs POST memories/search/ on one warm connection, and also records the server's own took_ms."""

    def __init__(
        self, target: Target, api_key: str, top_k: int, service_ms: list[float], narrowing: dict[str, Any] | None = None
    ) -> None:
        self._client = Client(replace(target, api_key=api_key))
        self._body = {"top_k": top_k, **(narrowing or {})}
        self._service_ms = service_ms

    def __call__(self, question: str) -> Asked:
        reply = self._client.call("POST", "memories/search/", {"query": question, **self._body})
        self._service_ms.append(reply["took_ms"])
        return Asked(self._client.last_ms, len(reply["results"]))


def search_latency(target: Target, asking: Asking) -> dict[str, Any]:
    """Return the figures of one run. The tenants are kept. Raises BenchmarkError if there are more tenants than
    cubes."""
    if asking.cubes < asking.tenants:
        raise BenchmarkError(f"{asking.cubes} cubes cannot be divided among {asking.tenants} tenants")
    places = [place_of(asking, number) for number in range(asking.tenants)]
    vacuumed = vacuum_and_analyse()
    measured = _measure(target, asking, places)
    expected = {name: min(asking.top_k, _visible(name, places)) for name in measured}
    return {
        "cubes": asking.cubes,
        "tenants": asking.tenants,
        "queries": asking.queries,
        "hidden": asking.hidden,
        "top_k": asking.top_k,
        "seed": SEED,
        "embedder": embedder().name,
        "vacuumed before": vacuumed,
        "mem0": why_no_mem0() or f"mem0ai {mem0_version()}, infer=False, no prepared statements",
        "systems": {name: found.figures(expected[name]) for name, found in measured.items()},
        **_ratios({name: timing(found.ms) for name, found in measured.items()}, measured),
    }


def search_latency_table(figures: dict[str, Any]) -> str:
    rows = [
        [name, figure["p50"], figure["p95"], figure.get("took_ms p50", ""), figure["full"]]
        for name, figure in figures["systems"].items()
    ]
    names = ["ours to floor", "service to floor", "goal p50 ms", "hidden to seen"]
    names += [name for name in figures if name.endswith(" to unfiltered")]
    ratios = [[name, figures[name]] for name in names if name in figures]
    systems = markdown(["system", "p50 ms", "p95 ms", "service p50 ms", "full answers"], rows)
    return f"{systems}\n\n{markdown(['', ''], ratios)}"


def place_of(asking: Asking, number: int) -> Place:
    """Return a tenant with its share of the cubes, loaded if missing."""
    size = asking.cubes // asking.tenants
    hidden = f"-hidden{round(asking.hidden * 100)}" if asking.hidden else ""
    kind = "-filtered" if asking.filtered else ""
    slug = f"bench-{asking.cubes}-{asking.tenants}{hidden}{kind}-{number}"
    owner, turns = owner_of(slug), conversation(size, SEED + number)
    shown = [turn for turn in turns if not _is_denied(turn, asking.hidden)]
    if asking.filtered:
        _make_personas(owner.actor)
    if cubes_in(owner.actor) != size:
        fill_tenant(owner.actor, list(_vary_drafts(turns)) if asking.filtered else _drafts(turns, asking.hidden))
    await_jobs(owner.actor)
    return Place(slug, owner, turns, len(shown))


def _drafts(turns: Sequence[Turn], hidden: float) -> list[CubeDraft]:
    """Return drafts of turns: hidden ones in the owner's private namespace, the others in one that every member may
    read."""
    return [draft for turn in turns for draft in drafts_of([turn], None if _is_denied(turn, hidden) else OPEN)]


def _vary_drafts(turns: Sequence[Turn]) -> Iterator[CubeDraft]:
    """Yield drafts of turns: a third of the sessions in each layer, a tenth by each persona."""
    for turn in turns:
        (draft,) = drafts_of([turn], OPEN)
        layer = list(Layer)[turn.session % len(Layer)]
        yield replace(draft, layer=layer, persona=f"persona-{turn.session % PERSONAS}")


def _make_personas(actor: Actor) -> None:
    for number in range(PERSONAS):
        with suppress(Conflict):
            persona_create(actor=actor, draft=PersonaDraft(name=f"persona-{number}"))


def _filters(turns: Sequence[Turn]) -> dict[str, dict[str, Any]]:
    """Return requests with one filter each, such as a tenth of the time or one session of the last year."""
    times = sorted(turn.at for turn in turns)
    since, until = times[len(times) // 2].isoformat(), times[len(times) * 6 // 10].isoformat()
    return {
        "layer": {"layers": ["long_term"]},
        "type": {"types": ["plaintext"]},
        "persona": {"personas": ["persona-3"]},
        "session": {"session_id": f"session-{turns[len(turns) // 2].session}"},
        "time": {"filters": {"event_time": {"gte": since, "lt": until}}},
    }


def _is_denied(turn: Turn, share: float) -> bool:
    return (turn.session * 37) % 100 < share * 100


def _measure(target: Target, asking: Asking, places: Sequence[Place]) -> dict[str, Measured]:
    measured: dict[str, Measured] = defaultdict(Measured)
    each = -(-(asking.warm_up + asking.queries) // len(places))
    asked_of = [questions(place.turns, each, SEED + 1) for place in places]
    with app_connection() as raw, _peer(asking, places) as peer:
        systems = [dict(_systems(target, asking, place, measured, raw, peer)) for place in places]
        for number in range(asking.warm_up + asking.queries):
            place = number % len(places)
            question = asked_of[place][number // len(places)]
            for name, ask in systems[place].items():
                found = ask(question)
                measured[name].ms.append(found.ms)
                measured[name].rows.append(found.rows)
    return {name: found.after(asking.warm_up) for name, found in measured.items()}


@contextmanager
def _peer(asking: Asking, places: Sequence[Place]) -> Iterator[Mem0 | None]:
    """Yield mem0 with all places loaded, one user per place; None if mem0 is not installed."""
    if why_no_mem0() is not None:
        yield None
        return
    with mem0(f"messages_{asking.cubes}_{asking.tenants}") as peer:
        for place in places:
            peer.fill(place.turns, place.slug)
        peer.vacuum()
        yield peer


def _systems(
    target: Target,
    asking: Asking,
    place: Place,
    measured: dict[str, Measured],
    raw: psycopg.Connection[Any],
    peer: Mem0 | None,
) -> Iterator[tuple[str, Ask]]:
    yield "ours", Ours(target, place.owner.api_key, asking.top_k, measured["ours"].service_ms)
    for name, narrowing in _filters(place.turns).items() if asking.filtered else ():
        name_filtered = f"ours, {name}"
        service_ms = measured[name_filtered].service_ms
        yield name_filtered, Ours(target, place.owner.api_key, asking.top_k, service_ms, narrowing)
    yield from _raw("", scene_of(place.owner.actor), asking.top_k, raw)
    if asking.hidden:
        reader = reader_of(place.slug)
        yield "reader: ours", Ours(target, reader.api_key, asking.top_k, measured["reader: ours"].service_ms)
        yield from _raw("reader: ", scene_of(reader.actor), asking.top_k, raw)
    if peer is not None:
        yield "mem0", partial(peer.search, user=place.slug, limit=asking.top_k)


def _raw(prefix: str, scene: Scene, top_k: int, raw: psycopg.Connection[Any]) -> Iterator[tuple[str, Ask]]:
    statements = {"floor": hybrid(by_index=False), "exact cosine": COSINE}
    if embedder().name == DEFAULT_MODEL:
        statements["floor by index"] = hybrid(by_index=True)
    for name, statement in statements.items():
        yield f"{prefix}{name}", partial(ask_floor, raw, statement, scene, limit=top_k)


def _visible(name: str, places: Sequence[Place]) -> int:
    """Return the number of rows that a caller can see; all tenants are alike."""
    return places[0].open_cubes if name.startswith("reader") else len(places[0].turns)


def _ratios(times: dict[str, Timing], measured: dict[str, Measured]) -> dict[str, Any]:
    """Return the ratios to the lower bound, which is the cheaper one of the two, whichever way the product takes."""
    floor = min(times[name].p50 for name in ("floor", "floor by index") if name in times)
    found: dict[str, Any] = {
        "ours to floor": round(times["ours"].p50 / floor, 2),
        "service to floor": round(timing(measured["ours"].service_ms).p50 / floor, 2),
        "goal p50 ms": round(2 * floor + HTTP_MS, 2),
    }
    for name, timing_of in times.items():
        if name.startswith("ours, "):
            found[f"{name.removeprefix('ours, ')} to unfiltered"] = round(timing_of.p50 / times["ours"].p50, 2)
    if "reader: ours" in times:
        found["hidden to seen"] = round(times["reader: ours"].p50 / times["ours"].p50, 2)
    return found
