"""Checks for separation of duties: nobody else can have signed in as this member.

An admin can make keys and sign-in links for other members. The audit log, which nobody can change, has each of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from governance.actor import Actor
from governance.database import acting
from governance.errors import OwnHandNeeded
from governance.models import ApiKey, AuditEntry
from governance.vocabulary import Outcome, PrincipalKind, Verb

WAYS_IN = (Verb.SIGN_IN_LINK_CREATED, Verb.APIKEY_CREATED, Verb.APIKEY_ROTATED)


@dataclass(frozen=True)
class WayIn:
    """A sign-in link for a member, or a secret of one of its keys. `by_other`: another member made it, and so has seen
    it; an operator does not count. `by_key`: a key made it.
    """

    key_id: UUID | None
    by_other: bool
    by_key: bool


def refuse_stand_in(actor: Actor) -> None:
    """Raise OwnHandNeeded if another member of the tenant may control this one.

    A session that began with a proved address is the member's own. Searches the tenant's audit log.
    """
    if actor.is_proved or actor.member_id is None:
        return
    key_id = actor.principal_id if actor.principal_kind is PrincipalKind.API_KEY else None
    if can_belong_to_another(list(_find_ways_in(actor, actor.member_id)), key_id=key_id):
        raise OwnHandNeeded(
            "Another member has made a way to act as you. Sign in with a password that you set by a mailed link, "
            "or have the operator make you a key.",
            rule="stand_in",
        )


def can_belong_to_another(ways: Sequence[WayIn], *, key_id: UUID | None) -> bool:
    """Return whether another person may have this key, or, if `key_id` is None, a browser session that a link may have
    begun. Pure; `ways` by age.

    With a link, another person may have set a password or made a key; with a key, more keys.
    """
    links = keys = False
    for way in ways:
        shared = way.by_other or links or (way.by_key and keys)
        if shared and key_id is not None and way.key_id == key_id:
            return True
        links |= shared and way.key_id is None
        keys |= shared and way.key_id is not None
    return key_id is None and links


def _find_ways_in(actor: Actor, member_id: UUID) -> Iterable[WayIn]:
    with acting(actor):
        keys = set(ApiKey.objects.filter(member_id=member_id).values_list("id", flat=True))
        made = AuditEntry.objects.filter(
            tenant_id=actor.tenant_id,
            verb__in=WAYS_IN,
            outcome=Outcome.DONE,
            object_ids__overlap=[member_id, *keys],
        )
        for entry in made.order_by("id"):
            key_id = next((object_id for object_id in entry.object_ids if object_id in keys), None)
            by_other = entry.member_id is not None and entry.member_id != member_id
            yield WayIn(key_id, by_other, entry.principal_kind == PrincipalKind.API_KEY)
