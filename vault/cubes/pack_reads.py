"""Reads of memories of installed packs, counted against the contract in the transaction that opens them.

A call that returns any memory of a pack is one read. Memories beyond the contract are left out.
"""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db import connection

from governance.actor import Actor
from governance.database import cached_in_transaction
from governance.errors import NotFound, QuotaExhausted
from governance.ids import uuid7
from governance.outbox.services import emit
from governance.vocabulary import Topic
from vault.models import Cube, Namespace, PackRead, Subscription
from vault.vocabulary import ContractState, Source

OPEN = """state = 'active' AND (valid_to IS NULL OR valid_to > clock_timestamp())
  AND (cardinality(purposes) = 0 OR %(purpose)s = ANY(purposes))
  AND (quota IS NULL OR used < quota OR period_from < date_trunc(period, clock_timestamp(), 'UTC'))"""
# Locked in one order, so that two calls that read two packs never wait for each other.
TAKE = f"""
WITH locked AS (
  SELECT id AS locked_id FROM vault_subscription
  WHERE tenant_id = %(tenant)s AND namespace_id = ANY(%(namespaces)s) AND state = 'active' ORDER BY id FOR UPDATE)
UPDATE vault_subscription SET
  used = CASE WHEN period_from < date_trunc(period, clock_timestamp(), 'UTC') THEN 1 ELSE used + 1 END,
  period_from = greatest(period_from, date_trunc(period, clock_timestamp(), 'UTC')), reads = reads + 1
FROM locked WHERE tenant_id = %(tenant)s AND id = locked_id AND {OPEN}
RETURNING id, namespace_id, reads
"""
CLOSED = f"""
SELECT namespace_id FROM vault_subscription
WHERE tenant_id = %(tenant)s AND namespace_id = ANY(%(namespaces)s)
GROUP BY namespace_id HAVING NOT bool_or({OPEN})
"""


def pack_reads_take(actor: Actor, cubes: Sequence[Cube]) -> frozenset[UUID]:
    """Count one read of each pack that `cubes` belong to; return the namespaces whose contract allows no more reads.

    A transaction counts each pack once. Memories of no pack cost nothing. Writes: Subscription …, PackRead …,
    OutboxEvent.
    """
    counts: dict[UUID, int] = {}
    for cube in cubes:
        if cube.source == Source.PACK:
            counts[cube.namespace_id] = counts.get(cube.namespace_id, 0) + 1
    if not counts or actor.is_system:
        return frozenset()
    taken: dict[UUID, bool] = cached_in_transaction("pack reads", dict)
    new = sorted(counts.keys() - taken.keys())
    if new:
        taken.update(_take_reads(actor, new, counts))
    return frozenset(namespace_id for namespace_id in counts if not taken[namespace_id])


def pack_read_require(actor: Actor, cube: Cube) -> None:
    """Count a read of one memory if it belongs to a pack.

    Raises QuotaExhausted if the contract allows no more reads; NotFound if the contract has ended or is for other
    purposes. Writes as `pack_reads_take`.
    """
    if not pack_reads_take(actor, [cube]):
        return
    rows = Subscription.objects.filter(tenant_id=cube.tenant_id, namespace_id=cube.namespace_id)
    row = rows.filter(state=ContractState.ACTIVE).order_by("-id").first()
    if row is not None and row.quota is not None and row.used >= row.quota:
        raise QuotaExhausted
    raise NotFound


def find_closed_namespaces(actor: Actor, namespace_ids: Collection[UUID]) -> frozenset[UUID]:
    """Return those of these namespaces that a contract closes to the actor now. One query; none for an empty list."""
    if not namespace_ids or actor.is_system:
        return frozenset()
    with connection.cursor() as cursor:
        cursor.execute(CLOSED, _parameters(actor, sorted(namespace_ids)))
        return frozenset(namespace_id for (namespace_id,) in cursor.fetchall())


def list_refused_paths(actor: Actor, before: Collection[UUID]) -> list[str]:
    """Return the paths of the namespaces in `before`, and of those that this transaction was refused to read."""
    taken: dict[UUID, bool] = cached_in_transaction("pack reads", dict)
    refused = {*before, *(namespace_id for namespace_id, is_open in taken.items() if not is_open)}
    if not refused:
        return []
    rows = Namespace.objects.filter(tenant_id=actor.tenant_id, id__in=refused)
    return list(rows.order_by("path").values_list("path", flat=True))


def _take_reads(actor: Actor, namespaces: list[UUID], counts: dict[UUID, int]) -> dict[UUID, bool]:
    with connection.cursor() as cursor:
        cursor.execute(TAKE, _parameters(actor, namespaces))
        counted = cursor.fetchall()
    PackRead.objects.bulk_create(
        PackRead(
            id=uuid7(),
            tenant_id=actor.tenant_id,
            subscription_id=subscription_id,
            number=number,
            memories=counts[namespace_id],
        )
        for subscription_id, namespace_id, number in counted
    )
    if counted:
        emit(
            actor=actor,
            topic=Topic.STORE_READ,
            payload={"subscriptions": [str(subscription_id) for subscription_id, _, _ in counted]},
        )
    opened = {namespace_id for _, namespace_id, _ in counted}
    return {namespace_id: namespace_id in opened for namespace_id in namespaces}


def _parameters(actor: Actor, namespaces: list[UUID]) -> dict[str, Any]:
    return {"tenant": actor.tenant_id, "namespaces": namespaces, "purpose": actor.context.purpose}
