"""Measures export and import: memories per second next to COPY of the same rows, and the peak memory of the process.

Each memory measurement runs in a new process, so that none inherits another one's peak.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID, uuid4

from benchmarks.client import BenchmarkError, Target
from benchmarks.copy_bound import copy_in, copy_out, why_no_copy
from benchmarks.profiles import profile_call
from benchmarks.synthetic import conversation
from benchmarks.tables import markdown
from benchmarks.tenants import Caller, await_jobs, cubes_in, drafts_of, fill_tenant, owner_of
from governance.actor import Actor
from governance.database import acting
from governance.jobs.kinds import JobRun
from governance.jobs.selectors import JobView, job_get
from governance.models import Job
from governance.tenants.services import command_line_actor
from governance.vocabulary import JobStatus, Topic
from vault.exchange.file_reading import ImportDraft, file_lines
from vault.exchange.items import FORMAT
from vault.exchange.selectors import ExportForm, exchange_file
from vault.exchange.services import ExportDraft, export_create, import_create, memories_import
from vault.vocabulary import ImportFormat

SEED = 20_261_126
PLACE = "/open"
FILE = 10_000  # memories of one imported file
OUT_GOAL, IN_GOAL, MEMORY_GOAL = 3_000, 1_000, 1.2
ROOT = Path(__file__).resolve().parents[1]
CHILD = "import django; django.setup(); from benchmarks.exchange import child_run; child_run()"
LONGEST_WAIT = 3_600


def exchange(target: Target, sizes: tuple[int, ...], profile: bool) -> dict[str, Any]:
    """Return the figures of one run. The exporting tenants and one tenant per import are kept. Raises
    BenchmarkError."""
    figures: dict[str, Any] = {"seed": SEED}
    for cubes in sizes:
        figures[f"{cubes} memories"] = _of_size(cubes, by_worker=cubes == min(sizes))
    least, most = (figures[f"{size} memories"] for size in (min(sizes), max(sizes)))
    figures["peak memory, most to least"] = {
        name: round(most[name]["peak MiB"] / least[name]["peak MiB"], 3) for name in ("export", "import")
    }
    figures["goal"] = {"out per_s": OUT_GOAL, "in per_s": IN_GOAL, "peak memory": MEMORY_GOAL}
    if profile:
        owner, job = _create_export(min(sizes))
        file = b"".join(_export(owner.actor, job))
        figures["profile of the export"] = profile_call(lambda: list(_export(owner.actor, job)))
        figures["profile of the import"] = profile_call(lambda: _import(_empty().actor, file))
    return figures


def exchange_table(figures: dict[str, Any]) -> str:
    headers = ["what", "per s", "of COPY", "peak MiB"]
    rows = []
    for found in (figure for name, figure in figures.items() if name.endswith(" memories")):
        for name in ("export", "import"):
            copy = found[f"{name} by COPY"]
            share = f"{found[name]['per_s'] / copy['per_s']:.1%}" if "per_s" in copy else ""
            rows.append([f"{name}, {found['cubes']}", found[name]["per_s"], share, found[name]["peak MiB"]])
        by_worker = found["import by the worker"]
        if "skipped" in by_worker:
            continue
        rows.append([f"import by the worker, {found['cubes']}", by_worker["per_s"], "", ""])
    return markdown(headers, rows)


def _of_size(cubes: int, *, by_worker: bool) -> dict[str, Any]:
    owner, job = _create_export(cubes)
    reason = why_no_copy()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "memories.jsonl"
        out = _child("export", cubes, job, path)
        files = list(_files(path))
    importer = f"bench-import-{uuid4().hex[:8]}"
    with TemporaryDirectory() as folder:
        for number, content in enumerate(files):
            (Path(folder) / f"{number:03}.jsonl").write_bytes(content)
        into = _child("import", importer, Path(folder))
    return {
        "cubes": cubes,
        "export": out,
        "import": into,
        "import by the worker": _by_worker(files, cubes) if by_worker else {"skipped": "measured at the least size"},
        "export by COPY": {"skipped": reason} if reason else copy_out(owner.actor.tenant_id),
        "import by COPY": {"skipped": reason} if reason else copy_in(owner.actor.tenant_id),
    }


def _create_export(cubes: int) -> tuple[Caller, UUID]:
    """Return the owner of the tenant of this size, and the id of a finished export."""
    owner = owner_of(f"bench-exchange-{cubes}")
    if cubes_in(owner.actor) != cubes:
        fill_tenant(owner.actor, drafts_of(conversation(cubes, SEED), PLACE))
    await_jobs(owner.actor)
    return owner, _await_job(owner.actor, export_create(actor=owner.actor, draft=ExportDraft())).id


def _empty() -> Caller:
    return owner_of(f"bench-import-{uuid4().hex[:8]}")


def _await_job(actor: Actor, job: JobView) -> JobView:
    """Wait until the worker has finished the job, and return it. Raises BenchmarkError."""
    until = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < until:
        view = job_get(actor=actor, job_id=job.id)
        if view.status is JobStatus.SUCCEEDED:
            return view
        if view.status in {JobStatus.FAILED, JobStatus.CANCELLED}:
            raise BenchmarkError(f"the job ended as {view.status}: {view.error}")
        time.sleep(0.2)
    raise BenchmarkError("the worker does not finish the job: does it run?")


def _export(actor: Actor, job_id: UUID) -> Iterator[bytes]:
    return exchange_file(actor=actor, job_id=job_id, form=ExportForm.JSONL).blocks


def _import(actor: Actor, content: bytes) -> int:
    """Run the steps of the import job in this process. Returns the number of memories."""
    draft = ImportDraft(content, ImportFormat.JSONL)
    file = file_lines(draft)
    request, total = b"\n".join([b'{"left_out": {}, "places": []}', *file.lines]), file.total
    del content, draft, file
    settings = {"format": "jsonl", "on_conflict": "skip", "namespace": None, "persona": None}
    system = command_line_actor(actor.tenant_id)
    run = JobRun(_insert_job(actor), actor, system, settings, {}, 0, total, request, {}, lambda done, total: None)
    while run.done < total:
        outcome = memories_import(run)
        with acting(actor):
            step = outcome() if callable(outcome) else outcome
        run = replace(run, done=step.done or total, result=step.result or {})
    return total


def _insert_job(actor: Actor) -> UUID:
    """Insert a finished job, which the steps name as theirs."""
    with acting(actor):
        job = Job(
            id=uuid4(),
            tenant_id=actor.tenant_id,
            kind=Topic.MEMORIES_IMPORT,
            status=JobStatus.SUCCEEDED,
            principal_kind=actor.principal_kind,
            principal_id=actor.principal_id,
        )
        job.save(force_insert=True)
        return job.id


def _by_worker(files: list[bytes], cubes: int) -> dict[str, Any]:
    actor, seconds = _empty().actor, 0.0
    for content in files:
        view = _await_job(
            actor, import_create(actor=actor, draft=ImportDraft(content=content, form=ImportFormat.JSONL))
        )
        if view.finished_at and view.started_at:
            seconds += (view.finished_at - view.started_at).total_seconds()
    return {"s": round(seconds, 2), "per_s": round(cubes / seconds, 1)}


def _files(path: Path) -> Iterator[bytes]:
    """Yield the lines of an export as files of importable size."""
    with path.open("rb") as lines:
        next(lines)
        while part := [line for _, line in zip(range(FILE), lines, strict=False)]:
            yield json.dumps({"format": FORMAT}).encode() + b"\n" + b"".join(part)


def _child(*words: object) -> dict[str, Any]:
    """Run one measurement in a new process, and return its figures. Raises BenchmarkError."""
    command = [sys.executable, "-c", CHILD, *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"{words[0]} failed: {done.stderr.strip().splitlines()[-1:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def child_run() -> None:
    """Run the measurement named on the command line, and print it as JSON."""
    what, *words = sys.argv[1:]
    figures = _child_export(*words) if what == "export" else _child_import(*words)
    peak = next(line for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines() if "VmHWM" in line)
    sys.stdout.write(json.dumps({**figures, "peak MiB": round(int(peak.split()[1]) / 1024, 1)}) + "\n")


def _child_export(size: str, job: str, file_path: str) -> dict[str, Any]:
    cubes, path, actor = int(size), Path(file_path), owner_of(f"bench-exchange-{size}").actor
    started = time.perf_counter()
    with path.open("wb") as file:
        for block in _export(actor, UUID(job)):
            file.write(block)
    seconds = time.perf_counter() - started
    return {"s": round(seconds, 2), "per_s": round(cubes / seconds, 1), "bytes": path.stat().st_size}


def _child_import(slug: str, folder: str) -> dict[str, Any]:
    actor, cubes = owner_of(slug).actor, 0
    started = time.perf_counter()
    for path in sorted(Path(folder).iterdir()):
        cubes += _import(actor, path.read_bytes())
    seconds = time.perf_counter() - started
    return {"s": round(seconds, 2), "per_s": round(cubes / seconds, 1)}
