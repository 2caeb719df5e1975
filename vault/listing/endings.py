"""The end of inactive memories: since when they are deleted, expired or archived, why, and until when they return."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from django.conf import settings

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting, database_now
from governance.models import Policy
from governance.vocabulary import Permission
from vault.cubes.selectors import CubeView
from vault.lifecycle.selectors import transition_last
from vault.models import Cube


class EndingKind(StrEnum):
    DELETED = "deleted"
    EXPIRED = "expired"
    ARCHIVED = "archived"


@dataclass(frozen=True)
class Ending:
    """The end of a memory. why: the name of a policy, or the reason that a person gave; until: None without a limit."""

    kind: EndingKind
    at: datetime
    why: str = field(default="", repr=False)
    until: datetime | None = None
    has_policy: bool = False


def endings_find(actor: Actor, views: Sequence[CubeView]) -> dict[UUID, Ending]:
    """Return the end of each inactive memory, by its id. Raises Forbidden. Queries: one, and four an archived memory.

    The name of a policy is told to who may read policies.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        names = _load_policy_names(actor, [view.cube for view in views])
        return {view.cube.id: _find_ending(actor, view.cube, names) for view in views}


def has_ended(cube: Cube) -> bool:
    """Return whether a memory is deleted or has expired. Use inside `acting`."""
    return cube.deleted_at is not None or (cube.expires_at is not None and cube.expires_at <= database_now())


def _load_policy_names(actor: Actor, cubes: Sequence[Cube]) -> dict[UUID, str]:
    wanted = {cube.expiry_policy for cube in cubes if cube.expiry_policy is not None}
    if not wanted or not is_allowed(actor, Permission.POLICY_READ):
        return {}
    return dict(Policy.objects.filter(tenant_id=actor.tenant_id, id__in=wanted).values_list("id", "name"))


def _find_ending(actor: Actor, cube: Cube, policies: Mapping[UUID, str]) -> Ending:
    """Return the end of a deleted, expired or archived memory. An archived one that expired is expired."""
    grace = timedelta(days=settings.DELETED_GRACE_DAYS)
    if cube.deleted_at is not None:
        return Ending(EndingKind.DELETED, cube.deleted_at, until=cube.deleted_at + grace)
    if cube.expires_at is None or cube.expires_at > database_now():
        last = transition_last(actor=actor, cube=cube)
        return Ending(EndingKind.ARCHIVED, last.at if last else cube.updated_at, last.reason if last else "")
    why = policies.get(cube.expiry_policy, "") if cube.expiry_policy is not None else ""
    return Ending(EndingKind.EXPIRED, cube.expires_at, why, cube.expires_at + grace, cube.expiry_policy is not None)
