"""Fingerprint of a memory: the centroid of the vectors of the questions that it answered. No question is stored.

A search puts its vector into the event that counts its reads, and the job behind that event keeps the centroid.
"""

from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np
from django.db import connection
from numpy.typing import NDArray
from pgvector import HalfVector

from governance.actor import Actor
from governance.outbox.routes import Payload
from vault.models import CubeUse

Vector = NDArray[np.float32]
WRITE = """
UPDATE vault_cubeuse AS used
SET fingerprint = entry.vector::halfvec, fingerprint_model = entry.model, fingerprint_count = entry.count
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::integer[]) AS entry (id, vector, model, count)
WHERE used.tenant_id = %s AND used.cube_id = entry.id
"""


def question_payload(model: str, vector: HalfVector, cube_ids: Sequence[UUID]) -> dict[str, object]:
    """Return the part of an event with the vector of a question and the ids of the memories that answered it."""
    packed = b64encode(vector.to_numpy().astype("<f2").tobytes()).decode()
    return {"question": {"model": model, "vector": packed, "ids": [str(cube_id) for cube_id in cube_ids]}}


def fingerprints_write(actor: Actor, payloads: Sequence[Payload]) -> None:
    """Add the question vectors of events to the fingerprints, in the transaction that counted their reads.

    A fingerprint by another model than the question's is replaced. Two queries; none without questions.
    Writes: CubeUse ….
    """
    added = _group_questions(payloads)
    if not added:
        return
    ids = sorted({cube_id for cube_id, _ in added})
    rows = CubeUse.objects.filter(tenant_id=actor.tenant_id, cube_id__in=ids).exclude(fingerprint=None)
    former = {
        (cube_id, model): (np.asarray(vector, dtype=np.float32), count)
        for cube_id, model, vector, count in rows.values_list(
            "cube_id", "fingerprint_model", "fingerprint", "fingerprint_count"
        )
    }
    entries = [(key, *_compute_centroid(vectors, former.get(key))) for key, vectors in sorted(added.items())]
    with connection.cursor() as cursor:
        cursor.execute(
            WRITE,
            [
                [cube_id for (cube_id, _), _, _ in entries],
                [HalfVector(centroid.tolist()).to_text() for _, centroid, _ in entries],
                [model for (_, model), _, _ in entries],
                [count for _, _, count in entries],
                actor.tenant_id,
            ],
        )


def _group_questions(payloads: Sequence[Payload]) -> Mapping[tuple[UUID, str], list[Vector]]:
    """Return the vectors by memory and model; each memory keeps only those of its last model in the batch."""
    latest: dict[UUID, str] = {}
    added: dict[tuple[UUID, str], list[Vector]] = defaultdict(list)
    for payload in payloads:
        question = payload.get("question")
        if not isinstance(question, Mapping):
            continue
        model, vector = str(question["model"]), np.frombuffer(b64decode(str(question["vector"])), dtype="<f2")
        for cube_id in question["ids"]:
            latest[UUID(cube_id)] = model
            added[UUID(cube_id), model].append(vector.astype(np.float32))
    return {key: vectors for key, vectors in added.items() if latest[key[0]] == key[1]}


def _compute_centroid(vectors: Sequence[Vector], former: tuple[Vector, int] | None) -> tuple[Vector, int]:
    """Return the mean of the new vectors and the former centroid, weighted by their numbers, and the total number."""
    total: Vector = np.stack(vectors).sum(axis=0)
    count = len(vectors)
    if former is not None and former[0].shape == total.shape:
        total, count = total + former[0] * former[1], count + former[1]
    return (total / count).astype(np.float32), count
