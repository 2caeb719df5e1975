"""Measures the recall of the vector index, and its effect on a search, relative to comparing all vectors."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import psycopg

from benchmarks.databases import app_connection, vacuum_and_analyse
from benchmarks.floor import Scene, scene_of
from benchmarks.report import timing
from benchmarks.search_latency import SEED, Asking, place_of
from benchmarks.synthetic import questions, unknown_questions
from benchmarks.tables import markdown
from governance.actor import Actor
from vault.embeddings.vector_index import NEAREST as BY_INDEX
from vault.providers.ports import VectorIndex
from vault.providers.registry import embedder, vector_index
from vault.retrieval import statements
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search
from vault.retrieval.sql import NEAREST_BY_SCAN
from vault.vocabulary import SearchMode

VISITED = (20, 40, 60, 100, 200, 1_000)
TOP = 10
ALIKE = 1e-6  # distances and scores that differ by less are equal
OTHER_SEED = 99
STATEMENT = f"""
SELECT {NEAREST_BY_SCAN} FROM (
  SELECT vector FROM vault_embedding
  WHERE tenant_id = %(tenant)s AND model = %(model)s AND namespace_id = ANY(%(namespaces)s::uuid[])
  ORDER BY {{distance}} LIMIT {TOP}
) AS nearest ORDER BY 1
"""
LOOKED_UP = f"""
SELECT {NEAREST_BY_SCAN} FROM vault_embedding
WHERE tenant_id = %(tenant)s AND model = %(model)s AND cube_id = ANY(%(ids)s::uuid[]) ORDER BY 1 LIMIT {TOP}
"""
ASKED = 100
SET_UP = (
    "SELECT set_config('app.tenant', %s, true), set_config('hnsw.ef_search', %s, true), "
    "set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('enable_sort', %s, true)"
)


@dataclass(frozen=True)
class Answers:
    """The results for each question: distances or scores, and milliseconds."""

    found: list[list[float]]
    ms: list[float]


def nearest(cubes: int, queries: int) -> dict[str, Any]:
    """Return the figures of one run. stored: questions in words of stored memories; unknown: in words of no memory.

    share: of the ten results that comparing all vectors gives.
    """
    place = place_of(Asking(cubes), 0)
    vacuum_and_analyse()
    asked = {
        "stored": questions(place.turns, queries, SEED + 1),
        "unknown": unknown_questions(queries, OTHER_SEED),
    }
    scene = scene_of(place.owner.actor)
    return {
        "cubes": cubes,
        "queries": queries,
        "embedder": embedder().name,
        "index": {kind: _by_index(scene, asking) for kind, asking in asked.items()},
        "search": {
            "hybrid, stored": _searches(place.owner.actor, asked["stored"], SearchMode.HYBRID),
            "hybrid, unknown": _searches(place.owner.actor, asked["unknown"], SearchMode.HYBRID),
            "dense, stored": _searches(place.owner.actor, asked["stored"], SearchMode.DENSE),
            "dense, unknown": _searches(place.owner.actor, asked["unknown"], SearchMode.DENSE),
        },
    }


def nearest_table(figures: dict[str, Any]) -> str:
    kinds = figures["index"]
    rows = [[name, *(part for kind in kinds for part in kinds[kind][name].values())] for name in kinds["stored"]]
    index = markdown(["", *(f"{kind}: {part}" for kind in kinds for part in ("share", "p50 ms"))], rows)
    search = [[name, *found.values()] for name, found in figures["search"].items()]
    return f"{index}\n\n{markdown(['', 'share', 'p50 ms', 'p50 ms comparing all'], search)}"


def _by_index(scene: Scene, asked: Sequence[str]) -> dict[str, dict[str, float]]:
    vectors = [json.dumps(vector.tolist()) for vector in embedder().embed(asked)]
    with app_connection() as raw:
        exact = _distances(raw, scene, vectors, None)
        found = {"compared one by one": {"share": 1.0, "p50": timing(exact.ms).p50}}
        for visited in VISITED:
            answers = _distances(raw, scene, vectors, visited)
            share = _share(answers.found, exact.found, lambda distance, worst: distance <= worst + ALIKE)
            found[f"{visited} rows visited"] = {"share": share, "p50": timing(answers.ms).p50}
        external = vector_index()
        if external is not None:
            answers = _distances_by_other(external, raw, scene, asked)
            share = _share(answers.found, exact.found, lambda distance, worst: distance <= worst + ALIKE)
            found[f"{external.name.split()[0]}, {ASKED} asked"] = {"share": share, "p50": timing(answers.ms).p50}
    return found


def _distances_by_other(
    index: VectorIndex, raw: psycopg.Connection[Any], scene: Scene, asked: Sequence[str]
) -> Answers:
    """Return the distances of the best of ASKED memories that the index outside PostgreSQL names, looked up there."""
    answers = Answers([], [])
    for vector in embedder().embed(asked):
        started = time.perf_counter()
        ids = index.nearest(scene.tenant, embedder().name, vector.tolist(), scene.namespaces, ASKED)
        parameters = {
            "tenant": scene.tenant,
            "model": embedder().name,
            "ids": ids,
            "vector": json.dumps(vector.tolist()),
        }
        with raw.transaction():
            raw.execute(SET_UP, [str(scene.tenant), "40", "on"])
            rows = raw.execute(LOOKED_UP, parameters).fetchall()
        answers.ms.append((time.perf_counter() - started) * 1000)
        answers.found.append([row[0] for row in rows])
    return answers


def _distances(raw: psycopg.Connection[Any], scene: Scene, vectors: Sequence[str], visited: int | None) -> Answers:
    """Return the distances of the nearest vectors. visited: rows that the index visits; None: compare all vectors."""
    distance = NEAREST_BY_SCAN if visited is None else BY_INDEX.format(dimension=embedder().dimension)
    answers = Answers([], [])
    for vector in vectors:
        parameters = {
            "tenant": scene.tenant,
            "model": embedder().name,
            "namespaces": scene.namespaces,
            "vector": vector,
        }
        started = time.perf_counter()
        with raw.transaction():
            raw.execute(SET_UP, [str(scene.tenant), str(visited or 40), "on" if visited is None else "off"])
            rows = raw.execute(STATEMENT.format(distance=distance), parameters).fetchall()
        answers.ms.append((time.perf_counter() - started) * 1000)
        answers.found.append([row[0] for row in rows])
    return answers


def _searches(actor: Actor, asked: Sequence[str], mode: SearchMode) -> dict[str, float]:
    """Compare searches with and without the index, in process, since HTTP adds the same time to both."""
    as_it_is = _scores(actor, asked, mode)
    with patch.object(statements, "is_index_cheaper", lambda *_, **__: False):
        exact = _scores(actor, asked, mode)
    share = _share(as_it_is.found, exact.found, lambda score, worst: score >= worst - ALIKE)
    return {"share": share, "p50": timing(as_it_is.ms).p50, "p50 comparing all": timing(exact.ms).p50}


def _scores(actor: Actor, asked: Sequence[str], mode: SearchMode) -> Answers:
    answers = Answers([], [])
    for question in asked:
        started = time.perf_counter()
        hits = memories_search(actor=actor, search=SearchQuery(query=question, top_k=TOP, mode=mode))
        answers.ms.append((time.perf_counter() - started) * 1000)
        answers.found.append([hit.score for hit in hits])
    return answers


def _share(found: list[list[float]], exact: list[list[float]], is_among: Callable[[float, float], bool]) -> float:
    """Return the share of results that are at least as good as the worst exact one."""
    kept = sum(is_among(result, best[-1]) for some, best in zip(found, exact, strict=True) for result in some)
    return round(kept / max(1, sum(map(len, exact))), 4)
