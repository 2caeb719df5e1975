"""Refused secrets of API keys: slowed down by prefix and address, and recorded in the audit log some minutes later.

A right secret is never refused for others' wrong tries: otherwise anybody who knows a prefix could block its key. Only
the job looks up the tenant of a prefix, so that refusing a known and an unknown prefix takes the same time. One audit
entry per key and run has the number of tries, so that an attack cannot flood the log.
"""

import logging
from collections import Counter as Counts
from collections import defaultdict
from uuid import UUID

import redis
from django.conf import settings
from django.db import connection

from governance.accounts.attempts import address_group, attempts_count, counter
from governance.actor import system_actor
from governance.audit.services import record
from governance.database import acting, no_tenant
from governance.ids import uuid7
from governance.tenants.rules import credential_parse
from governance.vocabulary import Outcome, Verb
from governance.volatile import volatile

NOTES = "memos:keys-refused"
MOST_NOTES = 10_000
# KEYS: the list of notes. ARGV: the note, the largest number of notes.
NOTE = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 or redis.call('HLEN', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
end
return 1
"""
logger = logging.getLogger(__name__)


def key_refusal_count(*, presented: str, address: str) -> None:
    """Count a refused key, and note it for the audit log. Raises TooManyAttempts during a pause."""
    credential = credential_parse(presented)
    prefix, group = credential.prefix if credential else "", address_group(address)
    attempts_count(
        [
            counter("key address", group, free=settings.ATTEMPTS_FREE_BY_ADDRESS),
            counter("key", prefix, group, free=settings.ATTEMPTS_FREE_BY_KEY),
        ]
    )
    noted = volatile(lambda client: client.eval(NOTE, 1, NOTES, f"{prefix}/{group}", MOST_NOTES))
    if noted is None:
        logger.warning("%s: prefix=%s address=%s", Verb.APIKEY_REFUSED, prefix, group)


def key_refusals_write() -> int:
    """Record the refused keys counted since the last run, and return their number.

    Called by the scheduler. Writes: one AuditEntry for each key.
    """
    refused: defaultdict[str, Counts[str]] = defaultdict(Counts)
    for note, tries in (volatile(_take_notes) or {}).items():
        prefix, _, group = note.partition("/")
        refused[prefix][group] += int(tries)
    return sum(_record(prefix, tries_by_address) for prefix, tries_by_address in refused.items())


def _take_notes(client: redis.Redis) -> dict[str, str]:
    """Read and remove the noted refusals in one step."""
    pipeline = client.pipeline(transaction=True)
    pipeline.hgetall(NOTES)
    pipeline.delete(NOTES)
    found: dict[str, str] = pipeline.execute()[0]
    return found


def _record(prefix: str, tries_by_address: Counts[str]) -> int:
    found = _find_key_by_prefix(prefix)
    if found is None:
        return 0
    key_id, tenant_id = found
    actor = system_actor(tenant_id=tenant_id, request_id=f"job-{uuid7()}")
    address, _ = tries_by_address.most_common(1)[0]
    with acting(actor):
        record(
            actor=actor,
            verb=Verb.APIKEY_REFUSED,
            object_type="api_key",
            object_ids=[key_id],
            detail={
                "prefix": prefix,
                "tries": tries_by_address.total(),
                "addresses": len(tries_by_address),
                "address": address,
            },
            outcome=Outcome.DENIED,
        )
    return 1


def _find_key_by_prefix(prefix: str) -> tuple[UUID, UUID] | None:
    """Return the tenant and the key with this prefix as (key id, tenant id), or None."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT id, tenant_id FROM governance_key_by_prefix(%s)", [prefix])
        found: tuple[UUID, UUID] | None = cursor.fetchone()
    return found
