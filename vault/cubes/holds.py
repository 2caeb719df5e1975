"""Checks of holds for writers of cubes: held cubes do not change, and new cubes get the holds that apply.

Triggers refuse changes of held cubes (vault/migrations/0003_functions.py); these checks come first, for a clear error.
Triggers also apply holds on data subjects; this module applies holds on queries.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection

from governance.actor import Actor
from governance.errors import Held, KeyUnavailable
from governance.keys.services import GENERAL, open_sealed, seal_for, token_maker
from governance.prepared import prepared_cursor
from vault.cubes.filters import filter_read
from vault.models import Cube, Hold
from vault.models.cube import CubeQuerySet
from vault.vocabulary import HoldKind

HELD_AMONG = "SELECT cube.id FROM unnest(%s::uuid[]) AS cube (id) WHERE vault_cube_is_held(%s, cube.id)"
ANY_QUERY = "SELECT EXISTS (SELECT 1 FROM vault_hold WHERE tenant_id = %s AND kind = %s)"
COVER = """
INSERT INTO vault_holdcube (id, tenant_id, hold_id, cube_id)
SELECT uuidv7(), %s, %s, matched.id FROM ({matched}) AS matched ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True)
class HoldTerms:
    """The sealed part of a hold: its reason, and the filters of a hold over a query."""

    reason: str = field(repr=False)
    filters: dict[str, Any] | None = field(default=None, repr=False)


def refuse_held(actor: Actor, cube_ids: Sequence[UUID]) -> None:
    """Raise Held if a freeze or a legal hold protects any of these cubes. One query."""
    if find_held_cubes(actor, cube_ids):
        raise Held


def find_held_cubes(actor: Actor, cube_ids: Iterable[UUID]) -> set[UUID]:
    """Return the ids of the cubes that a freeze or a legal hold protects. One query."""
    with connection.cursor() as cursor:
        cursor.execute(HELD_AMONG, [list(cube_ids), actor.tenant_id])
        return {cube_id for (cube_id,) in cursor.fetchall()}


def apply_query_holds(actor: Actor, cube_ids: Sequence[UUID]) -> bool:
    """Put the written cubes that match the query of an active hold under it, in the transaction of the write.

    Returns False if the tenant never had a hold on a query. Queries: one; otherwise two, and two for each active hold.
    Raises KeyUnavailable. Writes: HoldCube ….
    """
    with prepared_cursor() as cursor:
        cursor.execute(ANY_QUERY, [actor.tenant_id, HoldKind.QUERY])
        if not cursor.fetchone()[0]:
            return False
    for hold in Hold.objects.active().filter(tenant_id=actor.tenant_id, kind=HoldKind.QUERY):
        cover_cubes(hold, Cube.objects.filter(id__in=cube_ids))
    return True


def cover_cubes(hold: Hold, among: CubeQuerySet) -> int:
    """Put the cubes of `among` under a hold; for a hold on a query, only those that its filters match.

    Returns the number of newly held cubes. Raises KeyUnavailable; Invalid. Writes: HoldCube ….
    """
    filters = terms_open(hold).filters
    matching = among.filter(tenant_id=hold.tenant_id)
    if filters is not None:
        matching = matching.filter(filter_read(token_maker(hold.tenant_id), filters, archived=True))
    sql, parameters = matching.order_by().values("id").query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(COVER.format(matched=sql), [hold.tenant_id, hold.id, *parameters])
        return int(cursor.rowcount)


def terms_seal(hold: Hold, terms: HoldTerms) -> bytes:
    """Seal the terms of a hold. Raises KeyUnavailable."""
    plaintext = json.dumps({"reason": terms.reason, "filters": terms.filters}, ensure_ascii=False).encode()
    return seal_for(tenant_id=hold.tenant_id, scope=GENERAL, place=_place_of_hold(hold), plaintext=plaintext)


def terms_open(hold: Hold) -> HoldTerms:
    """Open the sealed part of a hold. Raises KeyUnavailable."""
    plaintext = open_sealed(tenant_id=hold.tenant_id, place=_place_of_hold(hold), blob=hold.sealed)
    if plaintext is None:
        raise KeyUnavailable("The key of a hold is gone.")
    stored = json.loads(plaintext)
    return HoldTerms(reason=stored["reason"], filters=stored["filters"])


def _place_of_hold(hold: Hold) -> bytes:
    return b"hold" + hold.id.bytes
