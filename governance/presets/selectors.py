"""Reading presets."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from governance.actor import Actor
from governance.authz.services import authorize
from governance.database import acting
from governance.models import RoleTemplate
from governance.presets.services import template_locate
from governance.vocabulary import Permission

Paginate = Callable[[QuerySet[Any]], Sequence[Any]]


def templates_list(*, actor: Actor, paginate: Paginate) -> list[RoleTemplate]:
    """A page of the tenant's presets, newest first. Raises Forbidden."""
    authorize(actor, Permission.TEMPLATE_MANAGE)
    with acting(actor):
        return list(paginate(RoleTemplate.objects.filter(tenant_id=actor.tenant_id).order_by("-id")))


def template_get(*, actor: Actor, template_id: UUID) -> RoleTemplate:
    """Raises NotFound; Forbidden."""
    with acting(actor):
        return template_locate(actor, template_id)
