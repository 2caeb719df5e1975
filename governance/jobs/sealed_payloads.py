"""The request and the result of a job, sealed for its tenant."""

import json
from collections.abc import Mapping
from typing import Any

from governance.keys.services import GENERAL, open_sealed, seal_for
from governance.models import Job


def seal_request(job: Job, plaintext: bytes) -> bytes:
    """Return the sealed request. Raises KeyUnavailable."""
    return seal_for(tenant_id=job.tenant_id, scope=GENERAL, place=_sealing_context(job), plaintext=plaintext)


def seal_result(job: Job, result: Mapping[str, Any]) -> bytes:
    """Return the sealed result. Raises KeyUnavailable."""
    return seal_request(job, json.dumps(dict(result)).encode())


def open_request(job: Job) -> bytes | None:
    """Return the decrypted request, or None if there was none or it was erased. Raises KeyUnavailable."""
    sealed = bytes(job.sealed_request)
    return open_sealed(tenant_id=job.tenant_id, place=_sealing_context(job), blob=sealed) if sealed else None


def open_result(job: Job) -> dict[str, Any] | None:
    """Return the decrypted result, or None without one. Raises KeyUnavailable."""
    if not job.sealed_result:
        return None
    plaintext = open_sealed(tenant_id=job.tenant_id, place=_sealing_context(job), blob=bytes(job.sealed_result))
    result: dict[str, Any] | None = json.loads(plaintext) if plaintext else None
    return result


def _sealing_context(job: Job) -> bytes:
    return b"job" + job.id.bytes
