"""Memories, jobs and conversations as JSON. Written by hand for speed, because a search returns up to a hundred."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from governance.api.representations import time_json
from vault.content.drafts import CubeDraft
from vault.cubes.selectors import CubeView
from vault.reconciliation.relations import ENDING
from vault.reconciliation.services import Change
from vault.retrieval.fusion import context_share
from vault.retrieval.selectors import Hit
from vault.vocabulary import AccessLevel, MemoryType, State

MemoryJson = dict[str, Any]
_PLAIN = CubeDraft(content="")
# The memory object for a caller who may not read the memory.
UNKNOWN: MemoryJson = {
    **dict.fromkeys(("title", "language"), ""),
    **dict.fromkeys(("persona", "subject", "pack", "session_id", "message_id", "task_id", "position", "speaker")),
    **dict.fromkeys(("deleted_at", "event_time", "event_end", "recurrence")),
    **dict.fromkeys(("said_at", "valid_from", "valid_to", "superseded_by", "expires_at")),
    **dict.fromkeys(("heat", "trust", "priority"), 0.0),
    **dict.fromkeys(("access_count", "token_count"), 0),
    **dict.fromkeys(("held", "pending_embedding", "dialogue_only"), False),
    **dict.fromkeys(("tags", "keywords", "parents", "occasions"), ()),
    "last_accessed_at": None,
    "metadata": {},
    "importance": _PLAIN.importance,
    "type": MemoryType.PLAINTEXT,
    "layer": _PLAIN.layer,
    "state": State.GENERATED,
    "semantic_type": _PLAIN.semantic_type,
    "modality": _PLAIN.modality,
    "source": _PLAIN.source,
    "sensitivity": _PLAIN.sensitivity,
    "access_level": AccessLevel.SHARED,
}


def changes_json(changes: Sequence[Change]) -> MemoryJson:
    """Return what new statements did to earlier ones: those that they ended, and those that contradict them."""
    superseded: list[MemoryJson] = []
    conflicts: list[MemoryJson] = []
    for change in changes:
        told = {"id": str(change.earlier), "by": str(change.later), "relation": change.kind}
        (superseded if change.kind in ENDING else conflicts).append(told)
    return {"superseded": superseded, "conflicts": conflicts}


def memory_json(view: CubeView) -> MemoryJson:
    """Return the memory object of the API."""
    cube, words = view.cube, view.words
    shown: MemoryJson = {
        "id": str(cube.id),
        "content": words.content,
        "title": words.title,
        "type": cube.type,
        "layer": cube.layer,
        "state": cube.state,
        "held": view.held,
        "deleted_at": time_json(cube.deleted_at),
        "semantic_type": cube.semantic_type,
        "dialogue_only": cube.is_dialogue_only,
        "modality": cube.modality,
        "language": cube.language,
        "namespace": {"id": str(cube.namespace_id), "path": cube.namespace.path},
        "persona": {"id": str(cube.persona_id), "name": cube.persona.name} if cube.persona else None,
        "subject": {"id": str(view.subject.id), "reference": view.subject.reference} if view.subject else None,
        "tags": cube.tags,
        "keywords": list(words.keywords),
        "metadata": words.metadata,
        "source": cube.source,
        "pack": view.pack or None,
        "session_id": words.session_id or None,
        "message_id": words.message_id or None,
        "task_id": words.task_id or None,
        "position": cube.position,
        "speaker": words.speaker or None,
        "event_time": time_json(cube.event_time),
        "event_end": time_json(view.event_end),
        "recurrence": recurrence.rule if (recurrence := view.recurrence) else None,
        "said_at": time_json(cube.said_at),
        "occasions": [time_json(moment) for moment in (cube.said_at or cube.created_at, *view.repeats)],
        "valid_from": time_json(cube.valid_from),
        "valid_to": time_json(cube.valid_to),
        "superseded_by": str(cube.superseded_by) if cube.superseded_by else None,
        "importance": cube.importance,
        "priority": cube.priority,
        "heat": view.heat,
        "trust": cube.trust,
        "sensitivity": cube.sensitivity,
        "access_level": cube.access_level,
        "expires_at": time_json(cube.expires_at),
        "version": cube.version,
        "parents": [str(parent) for parent in view.parents],
        "created_at": time_json(cube.created_at),
        "updated_at": time_json(cube.updated_at),
        "last_accessed_at": time_json(view.last_accessed_at),
        "access_count": view.access_count,
        "token_count": cube.token_count,
        "pending_embedding": view.pending_embedding,
    }
    if view.duplicate:
        shown["duplicate"] = True
    if cube.is_quarantined:
        shown["quarantined"] = True
    return shown


def duplicate_json(view: CubeView, *, content: str) -> MemoryJson:
    """Return an existing memory for a sender who may not read it: the sent text, its namespace and its time of
    storage."""
    cube = view.cube
    return UNKNOWN | {
        "id": str(cube.id),
        "content": content,
        "namespace": {"id": str(cube.namespace_id), "path": cube.namespace.path},
        "version": cube.version,
        "created_at": time_json(cube.created_at),
        "updated_at": time_json(cube.updated_at),
        "duplicate": True,
    }


def dry_run_json(ids: Sequence[UUID], *, count: int | None = None) -> dict[str, Any]:
    """Return the effect of a dry run. count: given instead of ids if the rows have none yet."""
    return {
        "dry_run": True,
        "count": len(ids) if count is None else count,
        "ids": [str(object_id) for object_id in ids],
    }


def hit_json(hit: Hit, *, explain: bool) -> MemoryJson:
    """Return a memory of a search result. explain: add the parts of its score; parts that are not computed are 0."""
    shown = memory_json(hit.view) | {"score": round(hit.score, 6)}
    if explain:
        shown["score_parts"] = {
            "lexical": round(hit.parts.lexical, 6),
            "dense": round(hit.parts.dense, 6),
            "context": round(context_share(hit.parts), 6),
            "entity": hit.parts.entity,
            "time": hit.parts.time,
            "learned": round(hit.parts.learned, 6),
            "graph": round(hit.parts.graph, 6),
            "fingerprint": round(hit.parts.fingerprint, 6),
            "heat": round(hit.parts.heat, 6),
            "trust": hit.parts.trust,
        }
    return shown
