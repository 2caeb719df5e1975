"""Measures the restoration of a namespace to an earlier time; every memory changed since, so each gets a new version.

For comparison: COPY of the same tenant's rows into empty tables with the same indexes.
"""

import time
from typing import Any
from uuid import uuid4

from benchmarks.client import BenchmarkError, Client, Target
from benchmarks.copy_bound import copy_in, why_no_copy
from benchmarks.synthetic import conversation
from benchmarks.tables import markdown
from benchmarks.tenants import Caller, await_jobs, cubes_in, drafts_of, fill_tenant, owner_of
from governance.database import acting, database_now

SEED = 20_261_124
OPEN = "/open"
GOAL_SECONDS = 30.0  # for 10,000 memories
LONGEST_WAIT = 1_800.0


def namespace_restore(target: Target, cubes: int) -> dict[str, Any]:
    """Return the figures of one run. The tenant is kept, with two more versions of each memory. Raises
    BenchmarkError."""
    owner = owner_of(f"bench-restore-{cubes}")
    if cubes_in(owner.actor) != cubes:
        fill_tenant(owner.actor, drafts_of(conversation(cubes, SEED), OPEN))
    await_jobs(owner.actor)
    client = Client(Target(url=target.url, api_key=owner.api_key))
    (namespace,) = client.call("GET", f"namespaces/?path={OPEN}")["results"]
    as_of = _now(owner)
    tag = {"action": "tag", "filters": {"namespace": OPEN}, "args": {"tags": [f"run-{uuid4()}"]}}
    started = time.perf_counter()
    changed = _run(client, "memories/actions/", tag)
    changing_seconds = time.perf_counter() - started
    await_jobs(owner.actor)
    started = time.perf_counter()
    body = {"as_of": as_of}
    preview = client.call("POST", f"namespaces/{namespace['id']}/restore/?dry_run=true", body)
    preview_seconds = time.perf_counter() - started
    started = time.perf_counter()
    restored = _run(client, f"namespaces/{namespace['id']}/restore/", body)
    seconds = time.perf_counter() - started
    indexed = await_jobs(owner.actor)
    client.close()
    reason = why_no_copy()
    return {
        "cubes": cubes,
        "seed": SEED,
        "changed before": changed["result"]["changed"],
        "all tagged s": round(changing_seconds, 2),
        "preview s": round(preview_seconds, 2),
        "previewed": preview["count"],
        "restored": restored["result"]["changed"],
        "restore s": round(seconds, 2),
        "memories a second": round(cubes / seconds, 1),
        "vectors after s": round(indexed, 2),
        "goal s": GOAL_SECONDS * cubes / 10_000,
        "copy of the same rows": {"skipped": reason} if reason else copy_in(owner.actor.tenant_id),
    }


def namespace_restore_table(figures: dict[str, Any]) -> str:
    names = (
        "cubes",
        "restored",
        "all tagged s",
        "preview s",
        "restore s",
        "goal s",
        "memories a second",
        "vectors after s",
    )
    return markdown(list(names), [[figures[name] for name in names]])


def _now(owner: Caller) -> str:
    with acting(owner.actor):
        return database_now().isoformat()


def _run(client: Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Run a job, and return it when it has finished. Raises BenchmarkError."""
    job: dict[str, Any] = client.call("POST", path, body)["job"]
    started = time.monotonic()
    while job["status"] in {"pending", "running"} and time.monotonic() - started < LONGEST_WAIT:
        time.sleep(0.1)
        job = client.call("GET", f"jobs/{job['id']}/")
    if job["status"] != "succeeded":
        raise BenchmarkError(f"the job is {job['status']}: {job['error']}")
    return job
