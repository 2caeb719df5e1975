"""The two formats of a subject's export: JSON, and one self-contained HTML page."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.template.loader import render_to_string

from vault.cubes.selectors import VersionView
from vault.models import Cube, CubeLink, CubeSource, StateTransition, Turn

FORMAT = "memos-subject/1"


class FileForm(StrEnum):
    JSON = "json"
    HTML = "html"


@dataclass(frozen=True)
class Heading:
    """The beginning of the file. total: the number of memories that the job listed."""

    tenant_id: UUID
    subject_id: UUID
    reference: str = field(repr=False)
    at: datetime
    total: int


@dataclass(frozen=True)
class SubjectMemory:
    """One memory with its versions about the subject and its lineage. turns: those whose question or answer it is."""

    cube: Cube
    versions: tuple[VersionView, ...]
    links: tuple[CubeLink, ...]
    sources: tuple[CubeSource, ...]
    steps: tuple[StateTransition, ...]
    turns: tuple[Turn, ...]


def file_start(heading: Heading, form: FileForm) -> bytes:
    if form is FileForm.HTML:
        return render_to_string("vault/subjects/export_start.html", {"heading": heading}).encode()
    opened = {
        "format": FORMAT,
        "tenant": str(heading.tenant_id),
        "subject": {"id": str(heading.subject_id), "reference": heading.reference},
        "exported_at": _format_time(heading.at),
    }
    return json.dumps(opened, ensure_ascii=False)[:-1].encode() + b', "memories": ['


def memory_block(memory: SubjectMemory, form: FileForm, *, is_first: bool) -> bytes:
    document = memory_document(memory)
    if form is FileForm.HTML:
        return render_to_string("vault/subjects/export_memory.html", {"memory": document}).encode()
    return (b"\n" if is_first else b",\n") + json.dumps(document, ensure_ascii=False).encode()


def file_end(form: FileForm, *, withheld: int) -> bytes:
    """Return the end of the file. withheld: the number of memories erased meanwhile or not readable."""
    if form is FileForm.HTML:
        return render_to_string("vault/subjects/export_end.html", {"withheld": withheld}).encode()
    return f'\n], "withheld": {withheld}}}\n'.encode()


def memory_document(memory: SubjectMemory) -> dict[str, Any]:
    """Return one memory as JSON, with the field names of the REST contract."""
    cube = memory.cube
    return {
        "id": str(cube.id),
        "namespace": cube.namespace.path,
        "type": cube.type,
        "layer": cube.layer,
        "state": cube.state,
        "source": cube.source,
        "created_at": _format_time(cube.created_at),
        "deleted_at": _format_time(cube.deleted_at),
        "expires_at": _format_time(cube.expires_at),
        "versions": [_encode_version(version) for version in memory.versions],
        "lineage": list(_encode_lineage(memory)),
        "transitions": [
            {"from": step.from_state, "to": step.to_state, "reason": step.reason, "at": _format_time(step.created_at)}
            for step in memory.steps
        ],
        "conversation_turns": [
            {"conversation": str(turn.conversation_id), "id": str(turn.id)} for turn in memory.turns
        ],
    }


def _encode_version(view: VersionView) -> dict[str, Any]:
    row, words = view.row, view.words
    return {
        "version": row.number,
        "content": words.content,
        "title": words.title,
        "tags": row.tags,
        "keywords": list(words.keywords),
        "metadata": words.metadata,
        "attributes": words.attributes,
        "speaker": words.speaker,
        "session_id": words.session_id,
        "semantic_type": row.semantic_type,
        "sensitivity": row.sensitivity,
        "event_time": _format_time(row.event_time),
        "valid_from": _format_time(row.valid_from),
        "valid_to": _format_time(row.valid_to),
        "author": {"kind": row.principal_kind, "id": str(row.principal_id)},
        "reason": row.reason,
        "hash": bytes(row.hash).hex(),
        "created_at": _format_time(row.created_at),
    }


def _encode_lineage(memory: SubjectMemory) -> Iterator[dict[str, str]]:
    """Yield the memories of `made_from` and `used_in`, each once, with the kind of the relation."""
    here, ties = memory.cube.id, set[tuple[str, UUID, str]]()
    for link in memory.links:
        ties.add(
            ("made_from", link.target_id, link.kind)
            if link.source_id == here
            else ("used_in", link.source_id, link.kind)
        )
    for source in memory.sources:
        ties.add(
            ("made_from", source.source_id, source.kind)
            if source.cube_id == here
            else ("used_in", source.cube_id, source.kind)
        )
    for direction, other, kind in sorted(ties):
        yield {"direction": direction, "memory_id": str(other), "kind": kind}


def _format_time(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None
