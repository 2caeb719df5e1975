"""Measures storing: one memory at a time, a thousand at a time, and the same rows by raw COPY."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from django.test import Client as TestClient

from benchmarks.bulk_load import items_of, message_of
from benchmarks.client import BenchmarkError, Client, Target
from benchmarks.copy_bound import copy_in, why_no_copy
from benchmarks.locomo import Turn
from benchmarks.peers import mem0, mem0_version, why_no_mem0
from benchmarks.profiles import Spent, profile_call
from benchmarks.report import timing
from benchmarks.synthetic import SESSION, conversation
from benchmarks.tables import markdown
from benchmarks.tenants import Caller, await_vectors, cubes_in, drafts_of, fill_tenant, owner_of
from vault.cubes.services import cubes_add
from vault.providers.registry import embedder

SEED = 20_260_102
BATCH = 1_000  # items of one bulk call
CLIENTS = (1, 2)
MOST_PROFILED = 3_000


@dataclass(frozen=True)
class Load:
    """The load of a run. cubes: added in bulk, for each number of clients; singles: added one by one."""

    cubes: int
    singles: int
    profile: bool = False


def ingest(target: Target, load: Load) -> dict[str, Any]:
    """Return the figures of one run, in a new tenant, which is kept."""
    caller = owner_of(f"bench-ingest-{uuid4().hex[:8]}")
    target = replace(target, api_key=caller.api_key)
    singles = conversation(load.singles, SEED)
    figures: dict[str, Any] = {
        "seed": SEED,
        "embedder": embedder().name,
        "add one": asdict(timing(_one_by_one(target, singles))),
        "add one, in process": asdict(timing(_in_process(caller, singles))),
        **_mem0(singles),
    }
    for clients in CLIENTS:
        figures[f"bulk, {clients} client{'s'[: clients - 1]}"] = _bulk(target, caller, load.cubes, clients)
    figures["bulk, in process"] = _bulk_in_process(caller, load.cubes)
    figures["copy"] = why_no_copy() or copy_in(caller.actor.tenant_id)
    if load.profile:
        figures["profile"] = _profile(caller, load.cubes)
    return figures


def ingest_table(figures: dict[str, Any]) -> str:
    copy = figures["copy"] if isinstance(figures["copy"], dict) else None
    headers = ["what", "p50 ms", "p95 ms", "cubes/s", "of COPY", "vectors after s"]
    tables = [markdown(headers, [_row(name, found, copy) for name, found in figures.items() if _is_measured(found)])]
    for name, spent in figures.get("profile", {}).items():
        tables.append(markdown([f"bulk, profiled: {name}", "s"], list(spent.items())))
    return "\n\n".join(tables)


def _is_measured(found: object) -> bool:
    return isinstance(found, dict) and bool({"p50", "per_s"} & set(found))


def _row(name: str, found: dict[str, Any], copy: dict[str, Any] | None) -> list[object]:
    share = f"{found['per_s'] / copy['per_s']:.1%}" if copy and "per_s" in found else ""
    cells = [found.get(key, "") for key in ("p50", "p95", "per_s")]
    return [name, *cells, share, found.get("vectors_after_s", "")]


def _one_by_one(target: Target, turns: Sequence[Turn]) -> list[float]:
    client, times = Client(target), []
    for turn in turns:
        session = {"infer": False, "namespace": "/one", "session_id": f"session-{turn.session}"}
        client.call("POST", "memories/", {"messages": [message_of(turn)], **session})
        times.append(client.last_ms)
    return times


def _in_process(caller: Caller, turns: Sequence[Turn]) -> list[float]:
    """Return the milliseconds of each add by the service, without HTTP, parsing and response."""
    times = []
    for draft in drafts_of(turns, "/in-process"):
        started = time.perf_counter()
        cubes_add(actor=caller.actor, drafts=[draft])
        times.append((time.perf_counter() - started) * 1000)
    return times


def _mem0(turns: Sequence[Turn]) -> dict[str, Any]:
    if (missing := why_no_mem0()) is not None:
        return {"mem0": missing}
    with mem0(f"one_by_one_{uuid4().hex[:8]}") as peer:
        times = [peer.add(turn, "benchmark") for turn in turns]
        peer.memory.vector_store.delete_col()
    return {"mem0": f"mem0ai {mem0_version()}, infer=False", "mem0 add one": asdict(timing(times))}


def _bulk(target: Target, caller: Caller, cubes: int, clients: int) -> dict[str, Any]:
    """Add memories in bulk; each client sends its share, one call after the other.

    p50, p95: of a call; per_s: cubes stored; vectors_after_s: from the last response to the last vector.
    """
    before = cubes_in(caller.actor)
    share = max(1, cubes // clients // SESSION) * SESSION
    shares = [_calls(conversation(share, SEED + number), f"/bulk-{clients}-{number}") for number in range(clients)]
    started = time.perf_counter()
    with ThreadPoolExecutor(clients) as threads:
        times = [sample for found in threads.map(lambda calls: _send(target, calls), shares) for sample in found]
    seconds = time.perf_counter() - started
    added = share * clients
    waited = await_vectors(caller.actor, count=before + added)
    return {
        "cubes": added,
        **asdict(timing(times)),
        "per_s": round(added / seconds, 1),
        "vectors_after_s": round(waited, 2),
    }


def _calls(turns: Sequence[Turn], namespace: str) -> list[dict[str, Any]]:
    return [{"items": items_of(turns[start : start + BATCH], namespace)} for start in range(0, len(turns), BATCH)]


def _send(target: Target, calls: Sequence[dict[str, Any]]) -> list[float]:
    client, times = Client(target), []
    for call in calls:
        client.call("POST", "memories/bulk/", call)
        times.append(client.last_ms)
    return times


def _bulk_in_process(caller: Caller, cubes: int) -> dict[str, Any]:
    drafts = drafts_of(conversation(cubes, SEED + 10), "/bulk-in-process")
    started = time.perf_counter()
    fill_tenant(caller.actor, drafts)
    return {"cubes": cubes, "per_s": round(cubes / (time.perf_counter() - started), 1)}


def _profile(caller: Caller, cubes: int) -> dict[str, Spent]:
    """Profile the whole REST call in this process: parsing, service and response. Raises BenchmarkError."""
    calls = _calls(conversation(min(cubes, MOST_PROFILED), SEED + 20), "/profile")
    client = TestClient(SERVER_NAME="127.0.0.1", headers={"authorization": f"Bearer {caller.api_key}"})

    client.get("/healthz")  # loads the views

    def call_all() -> None:
        for call in calls:
            reply = client.post("/api/v1/memories/bulk/", call, content_type="application/json")
            if reply.status_code != HTTPStatus.CREATED:
                raise BenchmarkError(f"bulk adding answered {reply.status_code}")

    return profile_call(call_all)
