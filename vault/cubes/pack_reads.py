"""Reads of words of installed packs, counted against the contract in the transaction that opens them.

A call that returns any words of a pack is one read, in however many transactions. What the contract does not open is
left out. Everything that opens words for a reader comes here by `vault.cubes.reader_words`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from governance.actor import Actor
from governance.database import cached_in_transaction
from governance.errors import (
    ContractEnded,
    ContractExpired,
    ContractForbidsExport,
    ContractForOtherPurposes,
    ContractRevoked,
    DomainError,
    NotFound,
    QuotaExhausted,
)
from governance.ids import uuid7
from governance.outbox.services import emit
from governance.prepared import sql_array
from governance.trace import noted_in_work
from governance.vocabulary import Topic
from vault.models import Cube, Namespace, PackRead, Subscription
from vault.vocabulary import Refusal, Source

TERMS = """state = 'active' AND (valid_to IS NULL OR valid_to > clock_timestamp())
  AND NOT vault_contract_is_revoked(publisher_id, id)
  AND (cardinality(purposes) = 0 OR %(purpose)s = ANY(purposes))"""
OPEN = f"""{TERMS}
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
PATIENT = "SET LOCAL lock_timeout = '20s'"
IMPATIENT = "SET LOCAL lock_timeout TO DEFAULT"
SELECTED = """
SELECT DISTINCT namespace_id FROM vault_subscription
WHERE tenant_id = %(tenant)s AND namespace_id = ANY(%(namespaces)s) AND """
CLOSED = f"""
SELECT namespace_id FROM vault_subscription
WHERE tenant_id = %(tenant)s AND namespace_id = ANY(%(namespaces)s)
GROUP BY namespace_id HAVING NOT bool_or({OPEN})
"""
# Of the latest contract: the first reason that holds.
REFUSED = """
SELECT DISTINCT ON (namespace_id) namespace_id, CASE
  WHEN state = 'revoked' OR vault_contract_is_revoked(publisher_id, id) THEN 'revoked' WHEN state = 'ended' THEN 'ended'
  WHEN valid_to <= clock_timestamp() THEN 'expired'
  WHEN cardinality(purposes) > 0 AND NOT %(purpose)s = ANY(purposes) THEN 'purpose'
  WHEN state = 'active' THEN 'quota' ELSE 'ended' END
FROM vault_subscription WHERE tenant_id = %(tenant)s AND namespace_id = ANY(%(namespaces)s)
ORDER BY namespace_id, id DESC
"""
# Words of a pack are its memories, and what was made of them. A quoted passage is asked about when it is opened. Copies
# that the terms let leave have no contract here; their source says where they came from.
PACKS = """
SELECT words.id, origin.namespace_id
FROM (
  SELECT id, id AS origin_id FROM unnest(%(cubes)s::uuid[]) AS asked (id)
  UNION
  SELECT cube_id, source_id FROM vault_cubesource
  WHERE tenant_id = %(tenant)s AND cube_id = ANY(%(cubes)s::uuid[]) AND (%(quoted)s OR kind <> 'quote')
) AS words JOIN vault_cube AS origin
  ON origin.tenant_id = %(tenant)s AND origin.id = words.origin_id AND origin.source = 'pack'
WHERE EXISTS (SELECT FROM vault_subscription AS agreed
  WHERE agreed.tenant_id = origin.tenant_id AND agreed.namespace_id = origin.namespace_id)
"""
ERRORS: Mapping[Refusal, type[DomainError]] = {
    Refusal.QUOTA: QuotaExhausted,
    Refusal.PURPOSE: ContractForOtherPurposes,
    Refusal.EXPIRED: ContractExpired,
    Refusal.REVOKED: ContractRevoked,
    Refusal.ENDED: ContractEnded,
}


def pack_reads_take(actor: Actor, packs: Iterable[UUID], *, leaves: bool = False) -> frozenset[UUID]:
    """Count one read of each pack; return the packs whose contract does not open them now.

    packs: the namespace of a pack for each memory that is opened. leaves: the words leave the installation, which the
    contract must allow; if it does not, nothing is counted. A call counts each pack once.
    Writes: Subscription …, PackRead …, OutboxEvent.
    """
    counts = Counter(packs)
    if not counts or actor.is_system:
        return frozenset()
    staying = counts.keys() - _select(actor, counts, "may_export") if leaves else frozenset()
    taken: dict[UUID, bool] = cached_in_transaction("pack reads", dict)
    new = sorted(counts.keys() - taken.keys() - staying)
    counted: set[tuple[str, UUID, UUID]] = noted_in_work("pack reads")
    known = [pack for pack in new if (actor.request_id, actor.tenant_id, pack) in counted]
    if known:  # by an earlier transaction of this call
        still_open = _select(actor, known, TERMS)
        taken.update((pack, pack in still_open) for pack in known)
    if fresh := [pack for pack in new if pack not in known]:
        taken.update(_take_reads(actor, fresh, counts))
        given = {(actor.request_id, actor.tenant_id, pack) for pack in fresh if taken[pack]}
        transaction.on_commit(lambda: counted.update(given))
    return frozenset(pack for pack in counts if pack in staying or not taken[pack])


def pack_read_require(actor: Actor, pack: UUID) -> None:
    """Count a read of a pack. Raises as `raise_refusal`. Writes as `pack_reads_take`."""
    if pack_reads_take(actor, [pack]):
        raise_refusal(actor, [pack])


def raise_refusal(actor: Actor, packs: Collection[UUID]) -> None:
    """Raise the reason why the contract of one of the packs opens nothing.

    Raises QuotaExhausted; ContractForOtherPurposes; ContractExpired; ContractRevoked; ContractEnded; NotFound without
    a contract.
    """
    reasons = find_refusals(actor, packs)
    for reason in Refusal:
        if reason in reasons.values():
            raise ERRORS[reason]()
    raise NotFound


def find_refusals(actor: Actor, packs: Collection[UUID]) -> dict[UUID, Refusal]:
    """Return why the contract of each of these closed packs opens nothing. One query."""
    rows = _fetch(REFUSED, actor, packs)
    return {pack: Refusal(reason) for pack, reason in rows}


def find_packs(actor: Actor, cube_ids: Collection[UUID], *, with_quotes: bool = False) -> dict[UUID, frozenset[UUID]]:
    """Return the namespaces of the packs whose words memories have, by memory. One query; none for no ids.

    with_quotes: and those that they quote.
    """
    if not cube_ids:
        return {}
    found: dict[UUID, set[UUID]] = {}
    with connection.cursor() as cursor:
        cursor.execute(PACKS, {"tenant": actor.tenant_id, "cubes": sql_array(cube_ids), "quoted": with_quotes})
        for cube_id, namespace_id in cursor.fetchall():
            found.setdefault(cube_id, set()).add(namespace_id)
    return {cube_id: frozenset(packs) for cube_id, packs in found.items()}


def find_pack_copies(actor: Actor, cube_ids: Collection[UUID]) -> frozenset[UUID]:
    """Return the memories that came from a pack, or have the text of an installed one. One query; none for no ids."""
    same = Cube.objects.filter(tenant_id=actor.tenant_id, source=Source.PACK, content_hash=OuterRef("content_hash"))
    same = same.filter(namespace_id__in=pack_namespaces(actor))
    rows = Cube.objects.filter(Q(source=Source.PACK) | Exists(same), tenant_id=actor.tenant_id, id__in=cube_ids)
    return frozenset(rows.values_list("id", flat=True)) if cube_ids else frozenset()


def find_pack_texts(actor: Actor, hashes: Collection[bytes]) -> frozenset[bytes]:
    """Return those of the keyed hashes that are of a text of an installed memory of a pack. One query."""
    rows = Cube.objects.filter(tenant_id=actor.tenant_id, source=Source.PACK, content_hash__any_of=hashes)
    rows = rows.filter(namespace_id__in=pack_namespaces(actor))
    return frozenset(bytes(content_hash) for content_hash in rows.values_list("content_hash", flat=True))


def pack_namespaces(actor: Actor) -> QuerySet[Any]:
    """Select the ids of the namespaces of packs, by which the index finds their texts."""
    return Subscription.objects.filter(tenant_id=actor.tenant_id).values("namespace_id")


def find_export_refusals(actor: Actor, cube_ids: Collection[UUID]) -> dict[UUID, DomainError]:
    """Return why memories of packs may not leave the installation, by memory. Three queries at most.

    The purpose is asked for where the words are opened.
    """
    packs = find_packs(actor, cube_ids)
    named = {pack for some in packs.values() for pack in some}
    staying = named - _select(actor, named, "may_export")
    closed = find_refusals(actor, find_closed_namespaces(actor, named - staying))
    errors = {pack: ERRORS[reason]() for pack, reason in closed.items() if reason is not Refusal.PURPOSE}
    errors |= dict.fromkeys(staying, ContractForbidsExport())
    return {cube_id: errors[pack] for cube_id, some in packs.items() for pack in some if pack in errors}


def find_closed_namespaces(actor: Actor, namespace_ids: Collection[UUID]) -> frozenset[UUID]:
    """Return those of these namespaces that a contract closes to the actor now. One query; none for an empty list."""
    if not namespace_ids or actor.is_system:
        return frozenset()
    return frozenset(namespace_id for (namespace_id,) in _fetch(CLOSED, actor, namespace_ids))


def list_refused_paths(actor: Actor, before: Collection[UUID]) -> list[tuple[str, Refusal]]:
    """Return path and reason of the packs in `before`, and of those that this transaction was refused to read."""
    taken: dict[UUID, bool] = cached_in_transaction("pack reads", dict)
    refused = {*before, *(namespace_id for namespace_id, is_open in taken.items() if not is_open)}
    if not refused:
        return []
    reasons = find_refusals(actor, refused)
    rows = Namespace.objects.filter(tenant_id=actor.tenant_id, id__in=refused).order_by("path")
    return [(path, reasons.get(pack, Refusal.ENDED)) for pack, path in rows.values_list("id", "path")]


def _take_reads(actor: Actor, packs: list[UUID], counts: Mapping[UUID, int]) -> dict[UUID, bool]:
    with connection.cursor() as cursor:  # readers of one pack wait for each other, many for longer than others may
        cursor.execute(PATIENT)
        counted = _fetch(TAKE, actor, packs)
        cursor.execute(IMPATIENT)
    PackRead.objects.bulk_create(
        PackRead(
            id=uuid7(),
            tenant_id=actor.tenant_id,
            subscription_id=subscription_id,
            number=number,
            memories=counts[pack],
        )
        for subscription_id, pack, number in counted
    )
    if counted:
        emit(
            actor=actor,
            topic=Topic.STORE_READ,
            payload={"subscriptions": [str(subscription_id) for subscription_id, _, _ in counted]},
        )
    opened = {pack for _, pack, _ in counted}
    return {pack: pack in opened for pack in packs}


def _select(actor: Actor, packs: Collection[UUID], condition: str) -> frozenset[UUID]:
    """Return the packs with an active contract that meets `condition`."""
    rows = _fetch(f"{SELECTED} state = 'active' AND {condition}", actor, packs) if packs else []
    return frozenset(pack for (pack,) in rows)


def _fetch(statement: str, actor: Actor, packs: Iterable[UUID]) -> list[tuple[Any, ...]]:
    parameters: dict[str, Any] = {
        "tenant": actor.tenant_id,
        "namespaces": sorted(packs),
        "purpose": actor.context.purpose,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
