"""Recall of tool calls by name, arguments and outcome, the most similar first."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.keys.services import token_maker
from governance.vocabulary import Permission, Verb
from vault.content.blobs import with_blobs
from vault.content.tool_calls import ARGUMENTS, OUTCOME, TOOL, ToolCall, read_call
from vault.cubes.filters import mark_condition
from vault.cubes.selectors import CubeView, cubes_read, cubes_view
from vault.index import marks
from vault.models import Cube
from vault.tools.rules import NEAR, similarity
from vault.vocabulary import Modality, State, ToolOutcome

LOOKED_AT = 300  # newest calls whose arguments are compared, besides those with equal arguments
SHOWN = (State.GENERATED, State.ACTIVATED)


@dataclass(frozen=True)
class CallQuery:
    """A query for stored tool calls.

    name, outcome: only calls with these; arguments: only calls with similar ones, at least `min_similarity` (0..1);
    None: any. top_k: 1 or more. before: only calls stored before this memory.
    """

    name: str = ""
    arguments: Mapping[str, Any] | None = field(default=None, repr=False)
    outcome: ToolOutcome | None = None
    namespaces: tuple[str, ...] = ()
    min_similarity: float = NEAR
    top_k: int = 10
    before: UUID | None = None


@dataclass(frozen=True)
class RecalledCall:
    """A recalled call. similarity: of the arguments, 0..1; 1 if they are equal or the query has none."""

    view: CubeView
    call: ToolCall
    similarity: float

    @property
    def is_failure(self) -> bool:
        return self.call.outcome is ToolOutcome.FAILED


@with_blobs
def tool_calls_recall(*, actor: Actor, query: CallQuery) -> list[RecalledCall]:
    """Return the matching calls that the actor may read, the most similar first, then the newest.

    Raises Forbidden; KeyUnavailable. Writes: AuditEntry, OutboxEvent. Opens up to LOOKED_AT + top_k memories.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        found = [
            call
            for view in cubes_view(actor=actor, cube_ids=_find_candidates(actor, query))
            if (call := _compare_call(view, query)) is not None and call.similarity >= query.min_similarity
        ]
        found.sort(key=lambda call: (call.similarity, call.view.cube.id), reverse=True)
        chosen = found[: query.top_k]
        read = cubes_read(actor=actor, cube_ids=[call.view.cube.id for call in chosen], verb=Verb.MEMORY_SEARCHED)
        opened = {view.cube.id: view for view in read}
        return [
            RecalledCall(opened[call.view.cube.id], call.call, call.similarity)
            for call in chosen
            if call.view.cube.id in opened
        ]


def earlier_failures(*, actor: Actor, view: CubeView, most: int = 3) -> list[RecalledCall]:
    """Return readable failed calls of the same tool with similar arguments, stored before this call, `most` at most.

    Returns an empty list if the memory is no tool call. Raises and writes as `tool_calls_recall`.
    """
    authorize(actor, Permission.MEMORY_READ)
    call = read_call(view.words.metadata) if view.cube.modality == Modality.TOOL_CALL else None
    if call is None:
        return []
    query = CallQuery(call.name, call.arguments, ToolOutcome.FAILED, top_k=most, before=view.cube.id)
    return tool_calls_recall(actor=actor, query=query)


def _find_candidates(actor: Actor, query: CallQuery) -> list[UUID]:
    """Return the ids of calls with equal arguments, and of the newest others. Two queries at most."""
    maker = token_maker(actor.tenant_id)
    rows = Cube.objects.visible_to(actor).filter(modality=Modality.TOOL_CALL, state__in=SHOWN)
    if query.namespaces:
        rows = rows.filter(namespace__path__in=query.namespaces)
    if query.before is not None:
        rows = rows.filter(id__lt=query.before)
    for field_name, value in ((TOOL, query.name), (OUTCOME, str(query.outcome or ""))):
        if value:
            rows = rows.filter(mark_condition(*marks.value_marks(maker, f"metadata.{field_name}", value)))
    newest = _newest_ids(rows, LOOKED_AT if query.arguments is not None else query.top_k)
    if query.arguments is None:
        return newest
    same = rows.filter(mark_condition(*marks.value_marks(maker, f"metadata.{ARGUMENTS}", dict(query.arguments))))
    return list(dict.fromkeys([*_newest_ids(same, query.top_k), *newest]))


def _newest_ids(rows: QuerySet[Cube], most: int) -> list[UUID]:
    return list(rows.order_by("-id").values_list("id", flat=True)[:most])


def _compare_call(view: CubeView, query: CallQuery) -> RecalledCall | None:
    call = read_call(view.words.metadata)
    if call is None:
        return None
    near = 1.0 if query.arguments is None else similarity(query.arguments, call.arguments)
    return RecalledCall(view, call, near)
