"""Measures a sweep of a tenant with a tenth of its memories expired, next to one UPDATE of the same rows.

Searches are timed before and during the sweep.
"""

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Event, Thread
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from benchmarks.client import BenchmarkError, Client, Target
from benchmarks.report import timing
from benchmarks.synthetic import conversation, questions
from benchmarks.tables import markdown
from benchmarks.tenants import Caller, await_jobs, cubes_in, drafts_of, fill_tenant, owner_of
from governance.database import acting
from governance.jobs.selectors import job_get
from governance.jobs.services import job_create
from governance.tenants.services import command_line_actor
from governance.vocabulary import JobStatus, Topic

SEED = 20_261_125
PLACE = "/open"
SHARE = 10  # one memory in so many expires
GOAL = 3.0  # times the UPDATE
SEARCH_GOAL = 1.3  # times a search without a sweep
ASKED = 100  # searches before the sweep
LONGEST_WAIT = 3_600.0
ALL = {"youngest_days": 0}  # every memory is judged
CHOOSE = "SELECT id FROM vault_cube WHERE tenant_id = %s AND state <> 'expired' ORDER BY id LIMIT %s"
END = "UPDATE vault_cube SET expires_at = now() WHERE id = ANY(%s)"
FLOOR = "UPDATE vault_cube SET state = 'expired' WHERE id = ANY(%s)"
STATES = "SELECT count(*) FROM vault_cube WHERE id = ANY(%s) AND state = 'expired'"


def lifecycle(target: Target, cubes: int) -> dict[str, Any]:
    """Return the figures of one run. The tenant is kept, with a tenth of its memories expired. Raises
    BenchmarkError."""
    owner = owner_of(f"bench-lifecycle-{cubes}")
    turns = conversation(cubes, SEED)
    if cubes_in(owner.actor) != cubes:
        fill_tenant(owner.actor, drafts_of(turns, PLACE))
    await_jobs(owner.actor)
    search = _make_search(replace(target, api_key=owner.api_key), questions(turns, ASKED, SEED))
    alone = [search() for _ in range(2 * ASKED)][ASKED:]  # the first ones warm up
    await_jobs(owner.actor)
    ids = _list_ended(owner, cubes // SHARE)
    floor = _floor(owner, ids)
    ended, beside = Event(), list[float]()
    searching = Thread(target=_search_until, args=(ended, search, beside))
    searching.start()
    try:
        seconds = await_sweep(owner, ALL)
    finally:
        ended.set()
        searching.join()
    changed = _count_marked(owner, ids)
    if changed != len(ids):
        raise BenchmarkError(f"the sweep marked {changed} of {len(ids)} memories")
    again = await_sweep(owner, ALL)
    return {
        "cubes": cubes,
        "seed": SEED,
        "changed": changed,
        "sweep s": round(seconds, 2),
        "second sweep s": round(again, 2),
        "update s": round(floor, 3),
        "sweep to update": round(seconds / floor, 1),
        "goal": GOAL,
        "search ms": timing(alone).p50,
        "search beside sweep ms": timing(beside).p50,
        "searches beside sweep": len(beside),
        "beside to alone": round(timing(beside).p50 / timing(alone).p50, 2),
        "goal of searches": SEARCH_GOAL,
    }


def lifecycle_table(figures: dict[str, Any]) -> str:
    names = ("cubes", "changed", "sweep s", "second sweep s", "update s", "sweep to update", "goal", "beside to alone")
    return markdown(list(names), [[figures[name] for name in names]])


def _make_search(target: Target, asked: list[str]) -> Callable[[], float]:
    """Return a function that runs the next search over REST on one connection and returns its milliseconds."""
    client, numbers = Client(target), itertools.cycle(asked)

    def search() -> float:
        client.call("POST", "memories/search/", {"query": next(numbers)})
        return client.last_ms

    return search


def _search_until(ended: Event, search: Callable[[], float], ms: list[float]) -> None:
    while not ended.is_set():
        ms.append(search())


def _list_ended(owner: Caller, count: int) -> list[UUID]:
    with acting(owner.actor), connection.cursor() as cursor:
        cursor.execute(CHOOSE, [owner.actor.tenant_id, count])
        ids = [id for (id,) in cursor.fetchall()]
        cursor.execute(END, [ids])
    return ids


def _floor(owner: Caller, ids: list[UUID]) -> float:
    """Return the seconds of one UPDATE of the same rows, rolled back."""
    with acting(owner.actor), connection.cursor() as cursor:
        started = time.perf_counter()
        cursor.execute(FLOOR, [ids])
        seconds = time.perf_counter() - started
        transaction.set_rollback(True)
    return seconds


def _count_marked(owner: Caller, ids: list[UUID]) -> int:
    with acting(owner.actor), connection.cursor() as cursor:
        cursor.execute(STATES, [ids])
        count: int = cursor.fetchone()[0]
    return count


def await_sweep(owner: Caller, chosen: Mapping[str, Any]) -> float:
    """Run a sweep with these settings, and return the seconds from request to end. Raises BenchmarkError."""
    return await_job(owner, Topic.LIFECYCLE_SWEEP, chosen)


def await_job(owner: Caller, kind: Topic, chosen: Mapping[str, Any]) -> float:
    """Run a job with these settings, and return the seconds from request to end. Raises BenchmarkError."""
    system = command_line_actor(owner.actor.tenant_id)
    started = time.perf_counter()
    job = job_create(actor=system, kind=kind, settings=chosen)
    while job.status in {JobStatus.PENDING, JobStatus.RUNNING} and time.perf_counter() - started < LONGEST_WAIT:
        time.sleep(0.05)
        job = job_get(actor=system, job_id=job.id)
    if job.status != JobStatus.SUCCEEDED:
        raise BenchmarkError(f"the job is {job.status}: {job.error}")
    return time.perf_counter() - started
