"""Wrong secrets of API keys: slowed down by prefix and address, and recorded in the audit log some minutes later.

A right secret is never refused because somebody else sends wrong ones: who knows a prefix could lock its key out. The
tenant of a prefix is looked up by the job alone, so that a known prefix takes as long to refuse as an unknown one. One
entry a key and run of the job says how many tries there were, so that no attack floods the log.
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
# KEYS: notes; ARGV: note, how many there may be.
NOTE = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 or redis.call('HLEN', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
end
return 1
"""
logger = logging.getLogger(__name__)


def key_refusal_count(*, presented: str, address: str) -> None:
    """Count a key that was refused, and note it for the audit log. Raises TooManyAttempts while a pause lasts."""
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
    for note, tries in (volatile(_take) or {}).items():
        prefix, _, group = note.partition("/")
        refused[prefix][group] += int(tries)
    return sum(_record(prefix, tries_by_address) for prefix, tries_by_address in refused.items())


def _take(client: redis.Redis) -> dict[str, str]:
    """Read and remove the noted refusals in one step."""
    pipeline = client.pipeline(transaction=True)
    pipeline.hgetall(NOTES)
    pipeline.delete(NOTES)
    found: dict[str, str] = pipeline.execute()[0]
    return found


def _record(prefix: str, tries_by_address: Counts[str]) -> int:
    found = _key_by_prefix(prefix)
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


def _key_by_prefix(prefix: str) -> tuple[UUID, UUID] | None:
    """(key, tenant)."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT id, tenant_id FROM governance_key_by_prefix(%s)", [prefix])
        found: tuple[UUID, UUID] | None = cursor.fetchone()
    return found
