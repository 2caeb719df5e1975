"""How many of the memories that sizes count are hidden from an actor by exception: no number may tell of them."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from governance.actor import Actor
from governance.prepared import prepared_cursor, sql_array
from vault.cubes.visibility import Exceptions
from vault.retrieval.sql import HIDDEN

MOST_KEPT = 2_000


class ExcludedStatistics(NamedTuple):
    """words: of all these cubes together."""

    cubes: int
    words: float


_kept: dict[str, ExcludedStatistics] = {}


def excluded_statistics(
    actor: Actor, namespaces: Sequence[UUID], excepted: Exceptions, *, counted: str
) -> tuple[ExcludedStatistics, bool]:
    """What of the sizes of `namespaces` is hidden, and whether it is of what `counted` names: the hidden set, and sizes
    as they were counted or corrected.

    Every hidden memory is looked at, once for `counted`. What is of another, as either was changed since that was read,
    is not kept.
    """
    found = _kept.get(counted)
    if found is not None:
        return found, True
    found, of = _look(actor, namespaces, excepted)
    if of == counted:
        if len(_kept) >= MOST_KEPT:
            _kept.clear()
        _kept[counted] = found
    return found, of == counted


def _look(actor: Actor, namespaces: Sequence[UUID], excepted: Exceptions) -> tuple[ExcludedStatistics, str]:
    parameters = {**excepted.parameters, "tenant": actor.tenant_id, "namespaces": sql_array(namespaces)}
    with prepared_cursor() as cursor:
        cursor.execute(HIDDEN.format(**excepted.parts), parameters)
        cubes, words, counted = cursor.fetchone()
    return ExcludedStatistics(cubes, words), counted
