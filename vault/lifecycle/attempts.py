"""Attempts of a job whose objects can fail singly: failed objects are retried, then left for a person. Pure.

The state of such a job is `{after, failed}` during the first pass over all objects, then `{again, attempt}`.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

ATTEMPTS = 3


def ids_to_retry(state: Mapping[str, Any]) -> list[UUID] | None:
    """Return the objects that this step retries; None during the first pass over all objects."""
    return [UUID(object_id) for object_id in state["again"]] if "again" in state else None


def plan_next_step(
    state: Mapping[str, Any], after: UUID | None, failed: Mapping[UUID, str]
) -> tuple[dict[str, Any] | None, Mapping[UUID, str]]:
    """Return the state of the next step, None if the job is done, and the objects that failed for good.

    after: the last object processed, None if it was the last of all. failed: object → error code, of this step.
    """
    if "again" in state:
        return _plan_retry(int(state["attempt"]), failed)
    waiting = [*state.get("failed", ()), *_as_texts(failed)]
    if after is not None:
        return {"after": str(after), **({"failed": waiting} if waiting else {})}, {}
    return ({"again": waiting, "attempt": 2} if waiting else None), {}


def _plan_retry(attempt: int, failed: Mapping[UUID, str]) -> tuple[dict[str, Any] | None, Mapping[UUID, str]]:
    if not failed:
        return None, {}
    if attempt < ATTEMPTS:
        return {"again": _as_texts(failed), "attempt": attempt + 1}, {}
    return {"again": _as_texts(failed), "attempt": 1}, failed


def _as_texts(ids: Iterable[UUID]) -> list[str]:
    return [str(object_id) for object_id in ids]
