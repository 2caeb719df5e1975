"""The content of an erasure's receipt, and its signed bytes."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from vault.vocabulary import SubjectStatus

FORMAT = "memos-erasure/1"
SIGNED_PREFIX = FORMAT.encode() + b"\n"
MOST_NAMED = 1_000  # memories that a hold keeps, in one receipt
LONGEST_REFERENCE = 200


@dataclass(frozen=True)
class ErasureCounts:
    """The rows that an erasure removed, or would remove.

    versions: of memories that were never about another subject, and older ones of memories that are now about another.
    derived: texts derived from these memories, whose words are erased. turns: of conversations. requests: of pending
    jobs. forms: caches and adapters made of these memories, whose payloads are destroyed.
    """

    memories: int = 0
    versions: int = 0
    vectors: int = 0
    tokens: int = 0
    derived: int = 0
    turns: int = 0
    requests: int = 0
    forms: int = 0

    def plus(self, other: "ErasureCounts") -> "ErasureCounts":
        mine, theirs = asdict(self), asdict(other)
        return ErasureCounts(**{name: mine[name] + theirs[name] for name in mine})


@dataclass(frozen=True)
class Clean:
    """The times by which the bytes are removed from storage. None: this installation cannot know (`reason`)."""

    live_files_by: datetime | None
    wal_by: datetime | None
    backups_by: datetime | None
    reason: str = ""


def estimate_clean_dates(
    now: datetime, *, hours: int, backup_days: int, missing: Sequence[str], copies: Sequence[str]
) -> Clean:
    """Return the times by which the bytes are removed. missing: rights that the removing task lacks; copies: settings
    that keep the bytes in the write-ahead log.
    """
    by = now + timedelta(hours=hours)
    return Clean(
        live_files_by=None if missing else by,
        wal_by=None if missing or copies else by,
        backups_by=now + timedelta(days=backup_days),
        reason="; ".join([*(f"{right} is missing" for right in missing), *copies]),
    )


def receipt_compose(
    *,
    id: UUID,
    tenant_id: UUID,
    subject_id: UUID | None,
    counts: ErasureCounts,
    kept: Sequence[UUID],
    is_key_destroyed: bool,
    asked_by: Mapping[str, str],
    at: datetime,
    clean: Clean,
    key_id: str,
) -> dict[str, Any]:
    """Return a receipt without its signature. subject_id None: of a whole tenant."""
    return {
        "format": FORMAT,
        "id": str(id),
        "tenant": str(tenant_id),
        "subject": str(subject_id) if subject_id else None,
        "asked_by": dict(asked_by),
        "at": _format_time(at),
        "erased": asdict(counts),
        "kept_by_holds": {"count": len(kept), "memories": [str(cube_id) for cube_id in kept[:MOST_NAMED]]},
        "key_destroyed": is_key_destroyed,
        "clean": {
            "live_files_by": _format_time(clean.live_files_by),
            "wal_by": _format_time(clean.wal_by),
            "backups_by": _format_time(clean.backups_by),
            "reason": clean.reason,
        },
        "key_id": key_id,
    }


def signed_bytes(receipt: Mapping[str, Any]) -> bytes:
    """Return the signed bytes of a receipt: names sorted, no white space, ASCII, without the signature itself."""
    unsigned = {name: value for name, value in receipt.items() if name != "signature"}
    return SIGNED_PREFIX + json.dumps(unsigned, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def receipt_sign(receipt: Mapping[str, Any], signature: bytes) -> dict[str, Any]:
    return {**receipt, "signature": base64.b64encode(signature).decode()}


def receipt_digest(receipt: Mapping[str, Any]) -> bytes:
    """Return the SHA-256 of a receipt, 32 bytes, for the audit log."""
    return hashlib.sha256(signed_bytes(receipt)).digest()


def subject_status(erasing_since: datetime | None, erased_at: datetime | None, receipts: int) -> SubjectStatus:
    if erased_at is not None:
        return SubjectStatus.ERASED
    if erasing_since is None:
        return SubjectStatus.ACTIVE
    return SubjectStatus.KEPT if receipts else SubjectStatus.ERASING


def _format_time(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None
