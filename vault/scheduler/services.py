"""MemScheduler: fills the working set of a stream after each of its turns, in the background.

The event follows the placement of the turn's page, so that its vector and topic are known. A turn never waits for it:
a set that is not ready yet is that of the turn before.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from uuid import UUID

from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.outbox.routes import Payload, Write
from governance.personas.lookup import OBJECT_TYPE, persona_locate, persona_target
from governance.vocabulary import Permission, Verb
from vault.layers.working_set import BUDGET, Preloaded, load_preloaded
from vault.models import Cube, LayerSettings, Page, PredictorCount, Stream, Turn, WorkingSet
from vault.scheduler.history import load_memories, load_turns
from vault.scheduler.replacement import DEFAULT, REPLACEMENTS, ReplacementName
from vault.scheduler.replay import count_use
from vault.scheduler.rules import Chosen, Count, learn_weights, preload

RECENT_TURNS = 50  # of a stream
COUNT = """
INSERT INTO vault_predictorcount (id, tenant_id, persona_id, predictor, preloaded, used)
VALUES (gen_random_uuid(), %s, %s, %s, %s, %s)
ON CONFLICT (tenant_id, persona_id, predictor) DO UPDATE
SET preloaded = vault_predictorcount.preloaded + excluded.preloaded, used = vault_predictorcount.used + excluded.used
"""


def working_sets_preload(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Preload memories for the next turn of streams, and count what the last ones used.

    Writes: WorkingSet …, PredictorCount …. Queries: twelve for each stream, and one for each predictor that counted.
    """
    stream_ids = sorted({UUID(str(payload["stream"])) for payload in payloads})

    def write() -> None:
        for stream in Stream.objects.filter(id__in=stream_ids).order_by("id"):
            _preload_stream(actor, stream)

    return write


def replacement_in_force(persona_id: UUID) -> ReplacementName:
    """Return the replacement policy of a persona of the transaction's tenant: its own, else the tenant's."""
    rows = LayerSettings.objects.filter(Q(persona_id=persona_id) | Q(persona=None)).exclude(replacement="")
    chosen: dict[UUID | None, str] = dict(rows.values_list("persona_id", "replacement"))
    return ReplacementName(chosen.get(persona_id) or chosen.get(None) or DEFAULT)


def tenant_replacement(*, actor: Actor) -> ReplacementName:
    """Return the replacement policy of personas without their own. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = LayerSettings.objects.filter(persona=None).exclude(replacement="")
        return ReplacementName(rows.values_list("replacement", flat=True).first() or DEFAULT)


def replacement_set(*, actor: Actor, persona_id: UUID, name: str) -> ReplacementName:
    """Choose the replacement policy of a persona, "" for the tenant's. Return the one that is then in force.

    Raises NotFound; Forbidden; Invalid. Writes: LayerSettings, AuditEntry.
    """
    with acting(actor):
        authorize(actor, Permission.PERSONA_UPDATE, persona_target(persona_locate(actor, persona_id, lock=True)))
        _write_replacement(actor, persona_id, name)
        return replacement_in_force(persona_id)


def tenant_replacement_set(*, actor: Actor, name: str) -> ReplacementName:
    """Choose the replacement policy of all personas without their own, "" for the default. Return it.

    Raises Forbidden; Invalid. Writes: LayerSettings, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        _write_replacement(actor, None, name)
    return ReplacementName(name or DEFAULT)


def _write_replacement(actor: Actor, persona_id: UUID | None, name: str) -> None:
    if name and name not in list(ReplacementName):
        raise Invalid(errors=[FieldError("replacement", f"one of {', '.join(ReplacementName)}")])
    here = Q(persona=None) if persona_id is None else Q(persona_id=persona_id)
    row = LayerSettings.objects.select_for_update().filter(here).first()
    row = row or LayerSettings(tenant_id=actor.tenant_id, persona_id=persona_id, values={})
    row.replacement = name
    row.save()
    record(
        actor=actor,
        verb=Verb.PERSONA_CHANGED,
        object_type=OBJECT_TYPE if persona_id else "tenant",
        object_ids=[persona_id or actor.tenant_id],
        detail={"part": "replacement"},
    )


def load_counts(persona_id: UUID) -> dict[str, Count]:
    """Return the counts of a persona's predictors."""
    rows = PredictorCount.objects.filter(persona_id=persona_id)
    return {row.predictor: Count(row.preloaded, row.used) for row in rows}


def _preload_stream(actor: Actor, stream: Stream) -> None:
    row = WorkingSet.objects.select_for_update().filter(stream=stream).first()
    last = Page.objects.filter(stream=stream).order_by("-position").values_list("position", flat=True).first()
    if last is None or (row is not None and row.position >= last):
        return
    before = [load_preloaded(item) for item in row.items] if row else []
    if row:
        _count_used(actor, stream, row.position, before)
    turns = load_turns(actor, stream.persona_id, latest=RECENT_TURNS, stream_id=stream.id)
    chosen = preload(
        load_memories(actor, stream.persona_id, turns, Cube.objects.filter(tenant_id=actor.tenant_id)),
        turns,
        weights=learn_weights(load_counts(stream.persona_id)),
        policy=REPLACEMENTS[replacement_in_force(stream.persona_id)],
        before={item.memory_id for item in before},
        budget=BUDGET,
    )
    row = row or WorkingSet(tenant_id=actor.tenant_id, persona_id=stream.persona_id, stream=stream)
    row.position, row.items = last, [_encode(item) for item in _keep_order(chosen, before)]
    row.made_at = Now()
    row.save()


def _count_used(actor: Actor, stream: Stream, position: int, held: Sequence[Preloaded]) -> None:
    """Count what the turns after a position used of the set that was made for them."""
    counts: dict[str, Count] = defaultdict(Count)
    asked = Page.objects.filter(stream=stream, position__gt=position).values("query_id")
    chosen = [Chosen(item.memory_id, item.reason, item.score, item.tokens) for item in held]
    for cited in Turn.objects.filter(question_id__in=asked).values_list("citations", flat=True):
        used = {UUID(citation["memory_id"]) for citation in cited}
        if used:
            count_use(counts, chosen, used)
    _write_counts(actor, stream.persona_id, counts)


def _write_counts(actor: Actor, persona_id: UUID, counts: Mapping[str, Count]) -> None:
    with connection.cursor() as cursor:
        for name in sorted(counts):
            count = counts[name]
            cursor.execute(COUNT, [actor.tenant_id, persona_id, name, count.preloaded, count.used])


def _keep_order(chosen: Sequence[Chosen], before: Sequence[Preloaded]) -> list[Chosen]:
    """Return the memories in the order of the last set, and new ones after them: the same set is the same text."""
    places = {item.memory_id: at for at, item in enumerate(before)}
    return sorted(chosen, key=lambda item: places.get(item.id, len(places)))


def _encode(item: Chosen) -> dict[str, str | int | float]:
    encoded = asdict(item) | {"memory_id": str(item.id), "score": round(item.score, 4), "reason": item.reason or "kept"}
    return {name: value for name, value in encoded.items() if name != "id"}
