"""Measures the cost of permissions: single decisions, and searches and lists by readers with no, some and many grants.

Half of a tenant's memories are open to every member, half are private to its owner. Readers have grants on different
numbers of private memories. One more reader has a single grant on the private namespace: it sees the same as the reader
with a grant on each memory, so their ratio is the cost of the grants.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from benchmarks.client import Client, Target
from benchmarks.databases import vacuum_and_analyse
from benchmarks.report import timing
from benchmarks.search_latency import OPEN, SEED
from benchmarks.synthetic import conversation, questions
from benchmarks.tables import markdown
from benchmarks.tenants import Caller, await_jobs, cubes_in, drafts_of, editor_of, fill_tenant, owner_of
from governance.access.decisions.grantables import permission_ids
from governance.access.decisions.rules import Granted, decide
from governance.access.decisions.rules import Target as Object
from governance.access.decisions.services import decide_on
from governance.access.grants.grantees import Grantee, group_ensure
from governance.database import acting
from governance.vocabulary import Action, Effect, GranteeKind, Permission, PrincipalKind
from vault.cubes.lookup import cube_target
from vault.models import Cube, CubeGrant, Namespace, NamespaceGrant

MANY, SOME = 10_000, 100
WARM_UP = 10
PURE, ASKED = 50_000, 500  # decisions that are timed, without and with the database
LIST_PAGE = 50


@dataclass(frozen=True)
class Load:
    cubes: int
    queries: int


@dataclass(frozen=True)
class Reader:
    """A member who searches. grants: the number of grants on single memories."""

    name: str
    caller: Caller
    grants: int


def authorization(target: Target, load: Load) -> dict[str, Any]:
    """Return the figures of one run. The tenant is kept."""
    slug = f"bench-access-{load.cubes}"
    owner, turns = owner_of(slug), conversation(load.cubes, SEED)
    half = load.cubes // 2
    if cubes_in(owner.actor) != load.cubes:
        fill_tenant(owner.actor, drafts_of(turns[:half], OPEN))
        fill_tenant(owner.actor, drafts_of(turns[half:], None))
    await_jobs(owner.actor)
    readers = _readers(slug, owner, half)
    vacuumed = vacuum_and_analyse()
    asked = questions(turns, WARM_UP + load.queries, SEED + 1)
    measured = _measure(target, readers, asked)
    return {
        "cubes": load.cubes,
        "queries": load.queries,
        "seed": SEED,
        "vacuumed before": vacuumed,
        "decisions": _decisions(readers),
        "systems": measured,
        "searches, granted one by one to at once": _ratio(measured, "search p50"),
        "lists, granted one by one to at once": _ratio(measured, "list p50"),
    }


def authorization_table(figures: dict[str, Any]) -> str:
    columns = ("grants", "search p50", "search p95", "list p50", "list p95", "sees")
    rows = [[name, *(system[column] for column in columns)] for name, system in figures["systems"].items()]
    return markdown(["reader", *(f"{name} ms" if " p" in name else name for name in columns)], rows)


def _readers(slug: str, owner: Caller, half: int) -> list[Reader]:
    with acting(owner.actor):
        private = Namespace.objects.get(owner_id=owner.actor.member_id, path__startswith="/users/")
        closed = list(Cube.objects.filter(namespace=private).order_by("id").values_list("id", flat=True))
        opened = list(Cube.objects.filter(namespace__path=OPEN).order_by("id").values_list("id", flat=True))
    denied = opened[: min(MANY, half) * 9 // 10]
    return [
        Reader("no grants", editor_of(slug, "none"), 0),
        *(
            _add_grants(Reader(f"{count} granted", editor_of(slug, f"{count}-granted"), count), closed[:count])
            for count in sorted({min(SOME, half), min(MANY, half)})
        ),
        _add_grants(Reader("half granted at once", editor_of(slug, "at-once"), 1), [private.id], NamespaceGrant),
        _add_grants(Reader(f"{len(denied)} denied", editor_of(slug, "denied"), len(denied)), denied, deny=True),
    ]


def _add_grants(reader: Reader, object_ids: Sequence[UUID], model: Any = CubeGrant, *, deny: bool = False) -> Reader:
    """Insert grants as the service writes them, many per statement, without existing ones."""
    actor = reader.caller.actor
    assert actor.member_id is not None
    with acting(actor):
        group = group_ensure(actor.tenant_id, Grantee(GranteeKind.MEMBER, actor.member_id, ""))
        rows = [
            model(
                tenant_id=actor.tenant_id,
                content_object_id=object_id,
                group=group,
                permission_id=permission_ids(model)[Action.READ],
                effect=Effect.DENY if deny else Effect.ALLOW,
                given_by_kind=PrincipalKind.SYSTEM,
                given_by=UUID(int=0),
            )
            for object_id in object_ids
        ]
        model.objects.bulk_create(rows, ignore_conflicts=True, batch_size=1_000)
    return reader


def _measure(target: Target, readers: Sequence[Reader], asked: Sequence[str]) -> dict[str, Any]:
    """Ask every reader each question in turn, so that other load on the machine affects all alike."""
    clients = {reader.name: Client(replace(target, api_key=reader.caller.api_key)) for reader in readers}
    searches: dict[str, list[float]] = {reader.name: [] for reader in readers}
    lists: dict[str, list[float]] = {reader.name: [] for reader in readers}
    sees: dict[str, int] = {}
    for question in asked:
        for name, client in clients.items():
            client.call("POST", "memories/search/", {"query": question, "top_k": 10})
            searches[name].append(client.last_ms)
            sees[name] = client.call("GET", f"memories/?page_size={LIST_PAGE}")["count"]
            lists[name].append(client.last_ms)
    return {
        reader.name: _figures(reader, searches[reader.name], lists[reader.name], sees[reader.name])
        for reader in readers
    }


def _figures(reader: Reader, searches: list[float], lists: list[float], sees: int) -> dict[str, Any]:
    search, listing = timing(searches[WARM_UP:]), timing(lists[WARM_UP:])
    return {
        "grants": reader.grants,
        "search p50": search.p50,
        "search p95": search.p95,
        "list p50": listing.p50,
        "list p95": listing.p95,
        "sees": sees,
    }


def _ratio(measured: dict[str, Any], name: str) -> float:
    many = max((name for name in measured if name.endswith(" granted")), key=lambda name: measured[name]["grants"])
    ratio: float = measured[many][name] / measured["half granted at once"][name]
    return round(ratio, 2)


def _decisions(readers: Sequence[Reader]) -> dict[str, Any]:
    """Return decisions per second: of the rules alone, with ten grants loaded; and of the engine, which queries
    grants."""
    reader = max(readers, key=lambda reader: reader.grants)
    actor = reader.caller.actor
    with acting(actor):
        found = CubeGrant.objects.select_related("content_object__namespace").filter(tenant_id=actor.tenant_id)[:ASKED]
        targets = [cube_target(row.content_object) for row in found]
        ten = [Granted(UUID(int=number), Effect.ALLOW, Action.WRITE, UUID(int=0)) for number in range(10)]
        asked = _per_second(
            ASKED, lambda number: decide_on(actor, Permission.MEMORY_READ, _pick_object(targets, number))
        )
    pure = _per_second(PURE, lambda number: decide(actor, Permission.MEMORY_READ, _pick_object(targets, number), ten))
    return {"rules": pure, "engine": asked}


def _pick_object(targets: Sequence[Object], number: int) -> Object:
    return targets[number % len(targets)]


def _per_second(count: int, decision: Callable[[int], object]) -> int:
    started = time.perf_counter()
    for number in range(count):
        decision(number)
    return round(count / (time.perf_counter() - started))
