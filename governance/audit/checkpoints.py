"""Signed checkpoints: the state of the seal chain at one time, in a file outside the database and in a row to download.

The KeyStore holds the signing keys (so PostgreSQL never does): one for each tenant, made at first use.
"""

import os
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.db import connection

from governance.audit.checkpoint_copies import checkpoints_elsewhere
from governance.audit.seals import chain_lock, find_sealed_time
from governance.audit.verifier import (
    Checkpoint,
    PublicKey,
    Unreadable,
    checkpoint_read,
    checkpoints_read,
    manifest_text,
)
from governance.database import no_tenant, tenant_transaction
from governance.ids import uuid7
from governance.keys.rules import DataKey
from governance.keys.services import key_store
from governance.keys.tables import AUDIT_SIGNING
from governance.models import AuditCheckpoint, AuditSeal


def public_key(tenant_id: UUID) -> PublicKey:
    """Return the public key of the tenant's checkpoints. Raises KeyUnavailable."""
    key = key_store().key_for(tenant_id, AUDIT_SIGNING)
    return PublicKey(id=str(key.id), raw=_private(key).public_key().public_bytes_raw())


def find_tenants_with_due_checkpoint() -> list[UUID]:
    """Return the tenants with seals that no checkpoint covers, if they are old enough or many enough."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT tenant_id FROM governance_audit_checkpoints_due(make_interval(secs => %s), %s)",
            [settings.AUDIT_CHECKPOINT_SECONDS, settings.AUDIT_CHECKPOINT_SEALS],
        )
        return [row[0] for row in cursor.fetchall()]


def checkpoint_write(tenant_id: UUID) -> Checkpoint | None:
    """Sign the current end of the chain unless a checkpoint covers it; return the newest checkpoint, None without
    seals.

    The file is written before the row, because a row alone proves nothing. Raises KeyUnavailable; OSError.
    """
    with tenant_transaction(tenant_id):
        chain_lock(tenant_id)
        seal = AuditSeal.objects.order_by("-seq").first()
        newest = AuditCheckpoint.objects.order_by("-seq").first()
        if seal is None or (newest and newest.seq >= seal.seq):
            return checkpoint_read(newest.text) if newest else None
        key = key_store().key_for(tenant_id, AUDIT_SIGNING)
        unsigned = Checkpoint(
            tenant=str(tenant_id),
            seq=seal.seq,
            chain_hash=bytes(seal.chain_hash).hex(),
            at=find_sealed_time().astimezone(UTC).isoformat(),
            key=str(key.id),
            signature="",
        )
        checkpoint = _sign(unsigned, key)
        _append(tenant_id, checkpoint)
        AuditCheckpoint(id=uuid7(), tenant_id=tenant_id, seq=seal.seq, text=checkpoint.text()).save(force_insert=True)
    return checkpoint


def checkpoints_outside(tenant_id: UUID, *, newest_file: bool = False) -> list[Checkpoint]:
    """Return every checkpoint outside the database, or those of the newest file and the last that others shared.

    Oldest first. Never inside a transaction. Raises Unreadable; Unavailable if the shared store does not answer.
    """
    files = files_of(tenant_id)[-1 if newest_file else 0 :]
    here = [checkpoint for file in files for checkpoint in checkpoints_in_file(file)]
    there = checkpoints_elsewhere(tenant_id, here, newest=newest_file)
    return sorted([*here, *there], key=lambda checkpoint: checkpoint.seq) if there else here


def find_torn_files(tenant_id: UUID) -> list[Path]:
    """Return the tenant's files whose last line is incomplete, because its write was cut off. Other lines are whole."""
    return [file for file in files_of(tenant_id) if _is_torn(_whole_lines(file.read_bytes())[1])]


def sign_manifest(tenant_id: UUID, manifest: Mapping[str, object]) -> dict[str, object]:
    """Return the manifest of an export with the tenant's signature. Raises KeyUnavailable."""
    key = key_store().key_for(tenant_id, AUDIT_SIGNING)
    unsigned = {**manifest, "key": str(key.id)}
    return {**unsigned, "signature": _private(key).sign(manifest_text(unsigned)).hex()}


def checkpoint_folder(tenant_id: UUID) -> Path:
    return checkpoints_folder() / str(tenant_id)


def checkpoints_folder() -> Path:
    """Return the folder of all tenants' checkpoints."""
    folder: Path = settings.DATA_DIR / "checkpoints"
    return folder


def _sign(checkpoint: Checkpoint, key: DataKey) -> Checkpoint:
    signature = _private(key).sign(checkpoint.signed_text()).hex()
    return Checkpoint(**(vars(checkpoint) | {"signature": signature}))


def _private(key: DataKey) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(key.secret)


def _append(tenant_id: UUID, checkpoint: Checkpoint) -> None:
    """Append one line to the file of its day, and sync it to disk; an incomplete last line is removed first."""
    folder = checkpoint_folder(tenant_id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{checkpoint.at[:10]}.jsonl"
    is_new = not path.exists()
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        whole, rest = _whole_lines(file.read())
        if _is_torn(rest):
            file.truncate(len(whole))
            file.seek(len(whole))
        line_end = "\n" if rest and not _is_torn(rest) else ""
        file.write(f"{line_end}{checkpoint.text()}\n".encode())
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the name of a new file is durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def files_of(tenant_id: UUID) -> list[Path]:
    return sorted(checkpoint_folder(tenant_id).glob("*.jsonl"))


def checkpoints_in_file(file: Path) -> list[Checkpoint]:
    """Return the checkpoints of one file. Raises Unreadable for a damaged line, unless it is an incomplete last one."""
    whole, rest = _whole_lines(file.read_bytes())
    try:
        return checkpoints_read((whole if _is_torn(rest) else whole + rest).decode())
    except (Unreadable, UnicodeDecodeError) as error:
        raise Unreadable(f"{file} was changed after it was written: a line in it is no checkpoint") from error


def _whole_lines(content: bytes) -> tuple[bytes, bytes]:
    """Return the complete lines, and the rest after them."""
    end = content.rfind(b"\n") + 1
    return content[:end], content[end:]


def _is_torn(rest: bytes) -> bool:
    """Return whether the text after the last whole line is an incomplete checkpoint."""
    try:
        return bool(rest) and not checkpoint_read(rest.decode())
    except (Unreadable, UnicodeDecodeError):
        return True
