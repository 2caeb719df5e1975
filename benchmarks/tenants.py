"""Tenants for benchmarks. They are kept, so that the next run of the same size need not load them again."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from benchmarks.client import BenchmarkError
from benchmarks.locomo import Turn
from governance.actor import Actor, CallContext
from governance.database import acting
from governance.errors import NotFound
from governance.models import Member, OutboxEvent
from governance.tenants.selectors import actor_by_key, member_by_email, tenant_id_by_slug
from governance.tenants.services import apikey_create, command_line_actor, member_add, tenant_create
from governance.vocabulary import Channel, RoleName, Scope
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.models import Cube, Embedding
from vault.providers.registry import embedder
from vault.reader.services import Message, messages_read
from vault.vocabulary import MessageRole

OWNER, READER = "benchmark@localhost", "benchmark-reader@localhost"
BATCH = 1_000
LONGEST_WAIT = 3_600.0  # seconds for the worker
KEY_LIFE = timedelta(days=1)


@dataclass(frozen=True)
class Caller:
    """A member of a tenant, as an actor in process and by API key through REST."""

    actor: Actor
    api_key: str = field(repr=False)


def owner_of(slug: str) -> Caller:
    """Return the owner of the tenant with this slug, which is created if missing."""
    tenant_id = tenant_id_by_slug(slug) or tenant_create(slug=slug, name=slug, owner_email=OWNER)[0].id
    return _caller(tenant_id, RoleName.OWNER, OWNER)


def reader_of(slug: str) -> Caller:
    """Return an editor of the same tenant, who does not see the owner's private memories."""
    tenant_id = tenant_id_by_slug(slug)
    if tenant_id is None:
        raise BenchmarkError(f"there is no tenant {slug}")
    return _caller(tenant_id, RoleName.EDITOR, READER)


def editor_of(slug: str, name: str) -> Caller:
    """Return a further editor of the tenant, by name."""
    tenant_id = tenant_id_by_slug(slug)
    if tenant_id is None:
        raise BenchmarkError(f"there is no tenant {slug}")
    return _caller(tenant_id, RoleName.EDITOR, f"benchmark-{name}@localhost.example")


def drafts_of(turns: Sequence[Turn], namespace: str | None) -> list[CubeDraft]:
    """Return the turns as drafts, as a REST call without inference makes them: one memory per message."""
    drafts = []
    for turn in turns:
        said = Message(MessageRole.USER, turn.text, turn.speaker, turn.at, turn.id)
        common = CubeDraft(content="", namespace=namespace, session_id=f"session-{turn.session}")
        drafts += messages_read([said], infer=False, common=common)
    return drafts


def fill_tenant(actor: Actor, drafts: Sequence[CubeDraft]) -> list[UUID]:
    """Store the drafts, skipping stored ones, and return all ids in order. Vectors follow later: see `await_jobs`."""
    ids: list[UUID] = []
    for start in range(0, len(drafts), BATCH):
        ids += [cube.cube.id for cube in cubes_add(actor=actor, drafts=drafts[start : start + BATCH])]
    return ids


def cubes_in(actor: Actor) -> int:
    with acting(actor):
        return Cube.objects.filter(tenant_id=actor.tenant_id, deleted_at=None).count()


def await_vectors(actor: Actor, *, count: int) -> float:
    """Wait until the worker has embedded `count` cubes of the tenant, and return the seconds. Raises BenchmarkError."""
    vectors = Embedding.objects.filter(tenant_id=actor.tenant_id, model=embedder().name)
    return _await(actor, lambda: vectors.count() >= count)


def await_jobs(actor: Actor) -> float:
    """Wait until the tenant has no pending work (vectors, sizes, links), and return the seconds. Raises
    BenchmarkError."""
    events = OutboxEvent.objects.filter(tenant_id=actor.tenant_id, done_at=None, parked_at=None)
    return _await(actor, lambda: not events.exists())


def _await(actor: Actor, done: Callable[[], bool]) -> float:
    started = time.monotonic()
    while time.monotonic() - started < LONGEST_WAIT:
        with acting(actor):
            if done():
                return time.monotonic() - started
        time.sleep(0.1)
    raise BenchmarkError("the worker does not finish its jobs: does it run?")


def _caller(tenant_id: UUID, role: RoleName, email: str) -> Caller:
    system = command_line_actor(tenant_id)
    key = apikey_create(
        actor=system,
        member=_member(system, role, email),
        scopes=[Scope.MEMORIES_READ, Scope.MEMORIES_WRITE, Scope.CHAT, Scope.ADMIN],
        name="benchmark",
        expires_at=datetime.now(UTC) + KEY_LIFE,
    )
    context = CallContext(channel=Channel.API)
    actor = actor_by_key(presented=key.text, request_id=f"benchmark-{key.prefix}", context=context)
    return Caller(actor=actor, api_key=key.text)


def _member(system: Actor, role: RoleName, email: str) -> Member:
    try:
        return member_by_email(actor=system, email=email)
    except NotFound:
        return member_add(actor=system, email=email, role=role)
