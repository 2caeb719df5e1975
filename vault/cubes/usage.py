"""Use of quotas, counted from stored rows without deleted and expired memories."""

from uuid import UUID

from django.db import connection

from governance.policies.rules import QuotaTarget
from governance.vocabulary import Measure, QuotaTargetKind, Verb

TENANT = "current_setting('app.tenant')::uuid"
LIVE = f"cube.tenant_id = {TENANT} AND cube.deleted_at IS NULL AND coalesce(cube.expires_at > now(), true)"
# Whoever wrote the first version stored the memory, wherever it has moved since.
BY_PRINCIPALS = """ AND EXISTS (
  SELECT 1 FROM vault_cubeversion AS first WHERE first.tenant_id = cube.tenant_id AND first.cube_id = cube.id
    AND first.number = 1 AND first.principal_id = ANY ({principals}))
"""
STATEMENTS = {
    Measure.MEMORIES: "SELECT count(*) FROM vault_cube AS cube WHERE {live}",
    Measure.BYTES: "SELECT coalesce(sum(vault_sealed_length(version.sealed)), 0) FROM vault_cube AS cube "
    "JOIN vault_cubeversion AS version ON version.tenant_id = cube.tenant_id AND version.cube_id = cube.id "
    "WHERE {live}",
    Measure.MODEL_TOKENS: "SELECT coalesce(sum(turn.prompt_tokens + turn.completion_tokens), 0) "
    f"FROM vault_turn AS turn WHERE turn.tenant_id = {TENANT} "
    "AND turn.created_at >= date_trunc('month', now(), 'UTC'){turns}",
}
PRINCIPALS = {
    QuotaTargetKind.MEMBER: "ARRAY(SELECT %(holder)s::uuid UNION SELECT key.id FROM governance_apikey AS key "
    f"WHERE key.tenant_id = {TENANT} AND key.member_id = %(holder)s)",
    QuotaTargetKind.API_KEY: "ARRAY[%(holder)s::uuid]",
}
# A turn does not say which key asked for it; its audit row does.
TURNS = """ AND turn.id IN (
  SELECT unnest(entry.object_ids) FROM governance_auditentry AS entry
  WHERE entry.tenant_id = turn.tenant_id AND entry.verb = %(verb)s AND entry.principal_id = ANY ({principals})
    AND entry.at >= date_trunc('month', now(), 'UTC'))
"""


# All members at once. A conversation is its member's own, so that its turns need no audit row.
STORED_BY_MEMBER = f"""
SELECT coalesce(key.member_id, first.principal_id), count(*) FILTER (WHERE version.number = 1),
  sum(vault_sealed_length(version.sealed))
FROM vault_cube AS cube
  JOIN vault_cubeversion AS first ON first.tenant_id = cube.tenant_id AND first.cube_id = cube.id AND first.number = 1
  JOIN vault_cubeversion AS version ON version.tenant_id = cube.tenant_id AND version.cube_id = cube.id
  LEFT JOIN governance_apikey AS key ON key.tenant_id = cube.tenant_id AND key.id = first.principal_id
WHERE {LIVE} GROUP BY 1
"""
TOKENS_BY_MEMBER = f"""
SELECT conversation.member_id, sum(turn.prompt_tokens + turn.completion_tokens)
FROM vault_turn AS turn JOIN vault_conversation AS conversation
  ON conversation.tenant_id = turn.tenant_id AND conversation.id = turn.conversation_id
WHERE turn.tenant_id = {TENANT} AND turn.created_at >= date_trunc('month', now(), 'UTC') GROUP BY 1
"""


def usage_by_member() -> dict[tuple[UUID, Measure], int]:
    """Count the use of each principal of each member, like `usage_count`. Two queries. Use inside `acting`."""
    found: dict[tuple[UUID, Measure], int] = {}
    with connection.cursor() as cursor:
        cursor.execute(STORED_BY_MEMBER)
        for member_id, memories, size in cursor.fetchall():
            found[member_id, Measure.MEMORIES] = int(memories)
            found[member_id, Measure.BYTES] = int(size)
        cursor.execute(TOKENS_BY_MEMBER)
        found |= {(member_id, Measure.MODEL_TOKENS): int(tokens) for member_id, tokens in cursor.fetchall()}
    return found


def usage_count(holder: QuotaTarget, measure: Measure) -> int:
    """Count what the holder has stored, or the model tokens of this month. Use inside `acting`. One query."""
    principals = PRINCIPALS.get(holder.kind)
    live = LIVE + (BY_PRINCIPALS.format(principals=principals) if principals else "")
    turns = TURNS.format(principals=principals) if principals else ""
    with connection.cursor() as cursor:
        statement = STATEMENTS[measure].format(live=live, turns=turns)
        cursor.execute(statement, {"holder": holder.id, "verb": Verb.TURN_CREATED})
        return int(cursor.fetchone()[0])
