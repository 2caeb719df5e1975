"""Signed checkpoints: what the chain was at one time, in a file outside the database and in a row for download.

The signing key is one of the KeyStore's (so never in PostgreSQL), made at first use, one for each tenant.
"""

import os
from datetime import UTC
from pathlib import Path
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.db import connection

from governance.audit.sealing import chain_lock, sealed_before
from governance.audit.verifier import Checkpoint, PublicKey, checkpoint_read, checkpoints_read
from governance.database import no_tenant, tenant_transaction
from governance.ids import uuid7
from governance.keys.rules import DataKey
from governance.keys.services import key_store
from governance.models import AuditCheckpoint, AuditSeal

SCOPE = "audit-signing"


def public_key(tenant_id: UUID) -> PublicKey:
    """What checkpoints of the tenant are checked with. Raises KeyUnavailable."""
    key = key_store().key_for(tenant_id, SCOPE)
    return PublicKey(id=str(key.id), raw=_private(key).public_key().public_bytes_raw())


def tenants_with_checkpoint_due() -> list[UUID]:
    """Tenants with seals that no checkpoint covers, since long enough or many enough."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT tenant_id FROM governance_audit_checkpoints_due(make_interval(secs => %s), %s)",
            [settings.AUDIT_CHECKPOINT_SECONDS, settings.AUDIT_CHECKPOINT_SEALS],
        )
        return [row[0] for row in cursor.fetchall()]


def checkpoint_write(tenant_id: UUID) -> Checkpoint | None:
    """Sign where the chain stands now, if no checkpoint stands there; the newest checkpoint, None without a seal.

    The file is written first: a row without one would be no proof. Raises KeyUnavailable; OSError.
    """
    with tenant_transaction(tenant_id):
        chain_lock(tenant_id)
        seal = AuditSeal.objects.order_by("-seq").first()
        newest = AuditCheckpoint.objects.order_by("-seq").first()
        if seal is None or (newest and newest.seq >= seal.seq):
            return checkpoint_read(newest.text) if newest else None
        key = key_store().key_for(tenant_id, SCOPE)
        unsigned = Checkpoint(
            tenant=str(tenant_id),
            seq=seal.seq,
            chain_hash=bytes(seal.chain_hash).hex(),
            at=sealed_before().astimezone(UTC).isoformat(),
            key=str(key.id),
            signature="",
        )
        checkpoint = _signed(unsigned, key)
        _append(tenant_id, checkpoint)
        AuditCheckpoint(id=uuid7(), tenant_id=tenant_id, seq=seal.seq, text=checkpoint.text()).save(force_insert=True)
    return checkpoint


def checkpoints_outside(tenant_id: UUID, *, newest_file: bool = False) -> list[Checkpoint]:
    """Every checkpoint in the tenant's files, or in the newest one, oldest first. Raises Unreadable."""
    files = sorted(checkpoint_folder(tenant_id).glob("*.jsonl"))[-1 if newest_file else 0 :]
    return [one for file in files for one in checkpoints_read(file.read_text(encoding="utf-8"))]


def checkpoint_folder(tenant_id: UUID) -> Path:
    folder: Path = settings.DATA_DIR / "checkpoints" / str(tenant_id)
    return folder


def _signed(checkpoint: Checkpoint, key: DataKey) -> Checkpoint:
    signature = _private(key).sign(checkpoint.signed_text()).hex()
    return Checkpoint(**(vars(checkpoint) | {"signature": signature}))


def _private(key: DataKey) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(key.secret)


def _append(tenant_id: UUID, checkpoint: Checkpoint) -> None:
    """One line in the file of its day, on the disk before this returns."""
    folder = checkpoint_folder(tenant_id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = os.open(folder / f"{checkpoint.at[:10]}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{checkpoint.text()}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)
