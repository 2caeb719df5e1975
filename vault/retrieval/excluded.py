"""The memories that index statistics count although the actor may not read them: no number may reveal them."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from governance.actor import Actor
from governance.prepared import prepared_cursor, sql_array
from vault.cubes.visibility import Exceptions
from vault.retrieval.sql import EXCLUDED_SIZES

MOST_KEPT = 2_000


class ExcludedStatistics(NamedTuple):
    """words: the total of these memories."""

    cubes: int
    words: float


_kept: dict[str, ExcludedStatistics] = {}


def excluded_statistics(
    actor: Actor, namespaces: Sequence[UUID], excepted: Exceptions, *, counted: str
) -> tuple[ExcludedStatistics, bool]:
    """The excluded part of the statistics of `namespaces`, and whether it belongs to `counted`.

    `counted` names the excluded set, and the state of the statistics. Every excluded memory is read once for it. A
    result for another set is not cached, because one of them changed since `counted` was read.
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
        cursor.execute(EXCLUDED_SIZES.format(**excepted.parts), parameters)
        cubes, words, counted = cursor.fetchone()
    return ExcludedStatistics(cubes, words), counted
