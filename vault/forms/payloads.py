"""Payloads of caches and adapters: in the blob store, sealed under the keys of all their data subjects."""

import hashlib
from collections.abc import Sequence
from uuid import UUID

from governance.keys.services import GENERAL, open_sealed, seal_for, subject_scope, token_maker
from vault.content.blobs import blob_name
from vault.models import MemoryForm
from vault.providers.ports import BlobStoreUnavailable
from vault.providers.registry import blob_store

NUMBER = 0  # in the name of a blob: versions count from 1
HANDLE_CHARACTERS = 40
LENGTH_BYTES = 4  # of the text, before it


def payload_name(tenant_id: UUID, form_id: UUID) -> str:
    return blob_name(tenant_id, form_id, NUMBER)


def payload_seal(tenant_id: UUID, form_id: UUID, subjects: Sequence[UUID], content: bytes) -> bytes:
    """Return the content sealed under the tenant's key and under the key of each subject, one inside the other.

    Without any one of the keys it does not open. Raises KeyUnavailable.
    """
    place = b"form" + form_id.bytes
    for scope in (GENERAL, *map(subject_scope, sorted(subjects))):
        content = seal_for(tenant_id=tenant_id, scope=scope, place=place, plaintext=content)
    return content


def payload_store(tenant_id: UUID, form_id: UUID, sealed: bytes) -> None:
    """Store a sealed payload, before the row that names it. Raises BlobStoreUnavailable."""
    blob_store().write(payload_name(tenant_id, form_id), sealed)


def payload_open(form: MemoryForm) -> bytes | None:
    """Return the payload; None if a key was destroyed. Outside any transaction.

    Raises BlobStoreUnavailable, also for a missing or changed blob; KeyUnavailable.
    """
    content: bytes | None = blob_store().read(payload_name(form.tenant_id, form.id))
    if content is None or hashlib.sha256(content).digest() != bytes(form.digest):
        raise BlobStoreUnavailable("The payload of a cache or adapter is missing or was changed in the archive.")
    for _ in (GENERAL, *form.subjects):
        content = open_sealed(tenant_id=form.tenant_id, place=b"form" + form.id.bytes, blob=content)
        if content is None:
            return None
    return content


def payload_encode(text: str, content: bytes) -> bytes:
    """Return a payload of the text that a cache or adapter was made of, and of its tensors (safetensors)."""
    encoded = text.encode()
    return len(encoded).to_bytes(LENGTH_BYTES, "big") + encoded + content


def payload_decode(payload: bytes) -> tuple[str, bytes]:
    """Return the text and the tensors of a payload."""
    end = LENGTH_BYTES + int.from_bytes(payload[:LENGTH_BYTES], "big")
    return payload[LENGTH_BYTES:end].decode(), payload[end:]


def task_seal(tenant_id: UUID, form_id: UUID, task: str) -> bytes:
    """Return the name of a task on which a form is mounted, sealed. Raises KeyUnavailable."""
    return seal_for(tenant_id=tenant_id, scope=GENERAL, place=b"form task" + form_id.bytes, plaintext=task.encode())


def task_open(form: MemoryForm) -> str:
    """Return the name of the task on which a form is mounted, or nothing. Raises KeyUnavailable."""
    if not form.sealed_task:
        return ""
    place = b"form task" + form.id.bytes
    name = open_sealed(tenant_id=form.tenant_id, place=place, blob=bytes(form.sealed_task))
    return name.decode() if name else ""


def handle_of(tenant_id: UUID, form_id: UUID) -> str:
    """Return the name of a payload in the engine, which nobody can guess. Raises KeyUnavailable."""
    return f"f-{token_maker(tenant_id).hash(f'form {form_id}').hex()[:HANDLE_CHARACTERS]}"


def salt_of(tenant_id: UUID) -> str:
    """Return the salt of a tenant's prompts in the engine's prefix cache. Raises KeyUnavailable."""
    return f"t-{token_maker(tenant_id).hash('prefix cache').hex()[:HANDLE_CHARACTERS]}"
