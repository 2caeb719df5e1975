"""Questions to a vector index outside PostgreSQL. A search goes on without its answer."""

import logging
import time
from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from prometheus_client import Counter

from vault.providers.ports import VectorIndexUnavailable
from vault.providers.registry import vector_index
from vault.retrieval.question import NearestNeeded, QuestionVector

PAUSE_SECONDS = 10.0  # after a failure: a search would wait for each timeout
QUESTIONS = Counter("memos_vector_index_questions", "Questions to the vector index outside PostgreSQL.", ["outcome"])
logger = logging.getLogger(__name__)
_unavailable_until = 0.0  # of the monotonic clock


def is_asked(name: str, cubes: int) -> bool:
    """Return whether the index of this name is the configured one and worth asking among `cubes` memories."""
    if not name or cubes < settings.MEMOS_VECTOR_INDEX.least:
        return False
    index = vector_index()
    return index is not None and index.name == name


def find_nearest(tenant_id: UUID, vector: QuestionVector, needed: NearestNeeded) -> Sequence[UUID]:
    """Return the nearest memories by the index, outside any transaction; none if it does not answer.

    A failure is logged and counted, and for PAUSE_SECONDS no search waits for the index again.
    """
    global _unavailable_until
    index = vector_index()
    if index is None or vector.vector is None or time.monotonic() < _unavailable_until:
        return ()
    try:
        found = index.nearest(tenant_id, vector.model, vector.vector.to_list(), needed.namespaces, needed.limit)
    except VectorIndexUnavailable as error:
        _unavailable_until = time.monotonic() + PAUSE_SECONDS
        QUESTIONS.labels("failed").inc()
        logger.warning("searches compare vectors in PostgreSQL for a while: %s", error.detail)
        return ()
    QUESTIONS.labels("answered").inc()
    return found
