"""Manifests: signed lists of the memories in an answer, recorded in the transaction that read them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import Conflict
from governance.ids import uuid7
from governance.keys.signing_keys import is_signed, signing_key
from governance.vocabulary import Permission, Verb
from vault.chat.selectors import TurnView
from vault.cubes.selectors import CubeView
from vault.models import Cube, CubeVersion, Turn
from vault.provenance.rules import (
    Manifest,
    ManifestItem,
    Principal,
    Verdict,
    content_digest,
    read_signature,
    signed_bytes,
    unsigned_json,
)


@dataclass(frozen=True)
class Leaving:
    """A memory in an answer, in the shown version. content: None if only its id is shown."""

    cube_id: UUID
    version: int
    content: str | None = field(repr=False)


def manifest_of_memories(*, actor: Actor, views: Sequence[CubeView]) -> Manifest:
    """Return the manifest of memories that the actor is shown; use it in the transaction that read them.

    Raises Forbidden; Conflict (a memory was erased meanwhile); KeyUnavailable. Writes: AuditEntry. One query.
    """
    shown = [Leaving(view.cube.id, view.cube.version, view.words.content) for view in views]
    return manifest_issue(actor=actor, leaving=shown, permission=Permission.MEMORY_READ)


def manifest_of_turns(*, actor: Actor, turns: Sequence[TurnView]) -> Manifest:
    """Return the manifest of the actor's own turns: their questions and answers, and the cited memories.

    Only cited memories that the actor may read are named, at their current version. Raises the errors of
    `manifest_of_memories` and writes its rows; two queries more.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    with acting(actor):
        said = _chat_texts(turns)
        named = [*said, *(citation.memory_id for turn in turns for citation in turn.citations)]
        versions = dict(Cube.objects.visible_to(actor).filter(id__in=named).values_list("id", "version"))
        shown = [
            Leaving(cube_id, versions[cube_id], said.get(cube_id))
            for cube_id in dict.fromkeys(named)
            if cube_id in versions
        ]
        return manifest_issue(actor=actor, leaving=shown, permission=Permission.CONVERSATION_USE)


def manifest_issue(*, actor: Actor, leaving: Sequence[Leaving], permission: Permission) -> Manifest:
    """List, sign and record the memories given out. The caller has checked that the actor may read them.

    Raises Forbidden; Conflict; KeyUnavailable. Writes: AuditEntry with the digest of the signed bytes.
    """
    authorize(actor, permission)
    key = signing_key()
    with acting(actor):
        unsigned = Manifest(
            id=uuid7(),
            tenant_id=actor.tenant_id,
            recipient=Principal(actor.principal_kind, actor.principal_id),
            at=database_now(),
            items=_load_items(leaving),
            key_id=key.key_id(),
        )
        signed = signed_bytes(unsigned_json(unsigned))
        record(
            actor=actor,
            verb=Verb.MANIFEST_ISSUED,
            object_type="memory",
            object_ids=[item.cube_id for item in leaving],
            after_hash=hashlib.sha256(signed).digest(),
            detail={"manifest": str(unsigned.id), "key": unsigned.key_id},
        )
    return replace(unsigned, signature=key.sign(signed))


def manifest_verify(*, actor: Actor, body: Mapping[str, Any]) -> Verdict:
    """Verify that this installation signed this manifest. Raises Forbidden; KeyUnavailable. Writes: AuditEntry."""
    authorize(actor, Permission.MEMORY_READ)
    key = signing_key()
    verdict = _decide_verdict(key.public_key(), key.key_id(), body)
    with acting(actor):
        record(
            actor=actor,
            verb=Verb.MANIFEST_VERIFIED,
            object_type="manifest",
            object_ids=[],
            detail={"verdict": verdict},
        )
    return verdict


def _decide_verdict(public_key: bytes, key_id: str, body: Mapping[str, Any]) -> Verdict:
    signature = read_signature(body)
    if signature is None:
        return Verdict.MALFORMED
    if body["key_id"] != key_id:
        return Verdict.UNKNOWN_KEY
    return Verdict.VALID if is_signed(public_key, signed_bytes(body), signature) else Verdict.BAD_SIGNATURE


def _load_items(leaving: Sequence[Leaving]) -> tuple[ManifestItem, ...]:
    wanted = {(item.cube_id, item.version) for item in leaving}
    rows = CubeVersion.objects.filter(
        cube_id__in={cube_id for cube_id, _ in wanted}, number__in={number for _, number in wanted}
    ).only("cube_id", "number", "hash", "principal_kind", "principal_id")
    found = {(row.cube_id, row.number): row for row in rows}
    if not wanted <= found.keys():
        raise Conflict("A memory was erased while it was read; try again.")
    return tuple(_make_item(found[(item.cube_id, item.version)], item.content) for item in leaving)


def _make_item(row: CubeVersion, content: str | None) -> ManifestItem:
    return ManifestItem(
        memory_id=row.cube_id,
        version=row.number,
        version_hash=bytes(row.hash),
        content_sha256=None if content is None else content_digest(content),
        writer=Principal(row.principal_kind, row.principal_id),
    )


def _chat_texts(turns: Sequence[TurnView]) -> dict[UUID, str | None]:
    """Return the memories of the turns' questions and answers, with their texts as shown."""
    texts = {turn.id: (turn.question, turn.answer) for turn in turns}
    rows = Turn.objects.filter(id__in=texts).order_by("id").values_list("id", "question_id", "answer_id")
    return {
        cube_id: text
        for turn_id, *cubes in rows
        for cube_id, text in zip(cubes, texts[turn_id], strict=True)
        if cube_id is not None
    }
