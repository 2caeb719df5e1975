"""The costs of language models that an API key caused, by day."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

from django.db import connection

from governance.actor import Actor
from governance.apikeys.requests import key_log_authorize
from governance.database import acting, database_now
from governance.ids import uuid7_floor
from governance.vocabulary import Outcome, Verb

# The audit log tells which key a turn belongs to; the turn has its cost. Turns of erased conversations are missing.
COSTS = """
SELECT turn.currency, (entry.at AT TIME ZONE 'UTC')::date, sum(turn.cost)
FROM governance_auditentry AS entry
  JOIN vault_turn AS turn ON turn.tenant_id = entry.tenant_id AND turn.id = entry.object_ids[1]
WHERE entry.tenant_id = %(tenant)s AND entry.principal_id = %(key)s AND entry.verb = %(verb)s
  AND entry.outcome = %(outcome)s AND entry.id >= %(floor)s AND turn.currency <> ''
GROUP BY 1, 2
"""


def key_costs_by_day(*, actor: Actor, key_id: UUID, days: int) -> Mapping[str, Sequence[Decimal]]:
    """Return the costs of the last `days` days (UTC, today last) by currency. Raises NotFound; Forbidden."""
    key_log_authorize(actor=actor, key_id=key_id)
    with acting(actor):
        today = database_now()
        first = (today - timedelta(days=days - 1)).date()
        with connection.cursor() as cursor:
            cursor.execute(
                COSTS,
                {
                    "tenant": actor.tenant_id,
                    "key": key_id,
                    "verb": Verb.TURN_CREATED,
                    "outcome": Outcome.DONE,
                    "floor": uuid7_floor(today - timedelta(days=days)),
                },
            )
            rows = cursor.fetchall()
    costs: defaultdict[str, list[Decimal]] = defaultdict(lambda: [Decimal(0)] * days)
    for currency, day, cost in rows:
        if day >= first:
            costs[currency][(day - first).days] += cost
    return dict(costs)
