"""Token use and cost of language models' answers."""

from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, Sum

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting, database_now
from governance.vocabulary import Permission
from vault.models import Turn
from vault.vocabulary import EXTRACTIVE


@dataclass(frozen=True)
class ModelUsage:
    """The answers of one model at prices in one currency; an empty currency means no price."""

    model: str
    currency: str
    answers: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost: Decimal


def usage_of_month(*, actor: Actor) -> list[ModelUsage]:
    """Return the tenant's answers by model since the first of the month (UTC), most tokens first. Raises Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        begin = database_now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        rows = Turn.objects.filter(tenant_id=actor.tenant_id, created_at__gte=begin).exclude(model=EXTRACTIVE)
        sums = rows.values("model", "currency").annotate(
            answers=Count("id"),
            prompts=Sum("prompt_tokens"),
            completions=Sum("completion_tokens"),
            cached=Sum("cached_tokens"),
            total=Sum("cost"),
        )
        found = [
            ModelUsage(
                model=row["model"],
                currency=row["currency"],
                answers=row["answers"],
                prompt_tokens=row["prompts"],
                completion_tokens=row["completions"],
                cached_tokens=row["cached"],
                cost=row["total"],
            )
            for row in sums
        ]
    return sorted(
        found, key=lambda usage: (-usage.prompt_tokens - usage.completion_tokens, usage.model, usage.currency)
    )
