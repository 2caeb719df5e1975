"""Preview of a grant: it is created in a transaction that is rolled back."""

from dataclasses import dataclass

from django.db import transaction

from governance.access.grants.overview import MemberAccess, access_overview
from governance.access.grants.services import GrantDraft, grant_create
from governance.actor import Actor, CallContext
from governance.database import acting
from governance.pages import First
from governance.vocabulary import Action

MOST_MEMBERS = 500


@dataclass(frozen=True)
class AccessChange:
    """An action that one member gains or loses."""

    name: str
    action: Action
    gains: bool


def grant_rehearse(*, actor: Actor, draft: GrantDraft, context: CallContext) -> list[AccessChange]:
    """Return the changes of access that a grant would make in `context`, for the first MOST_MEMBERS members.

    Raises the errors of `grant_create`. Writes nothing.
    """
    with acting(actor), transaction.atomic():
        before = _members(actor, draft, context)
        grant_create(actor=actor, draft=draft)
        after = _members(actor, draft, context)
        transaction.set_rollback(True)
    return [change for old, new in zip(before, after, strict=True) for change in _changes(old, new)]


def _members(actor: Actor, draft: GrantDraft, context: CallContext) -> tuple[MemberAccess, ...]:
    pages = First(MOST_MEMBERS)
    found = access_overview(
        actor=actor, object_type=draft.object_type, object_id=draft.object_id, context=context, pages=pages
    )
    return found.members


def _changes(before: MemberAccess, after: MemberAccess) -> list[AccessChange]:
    pairs = zip(Action, before.decisions, after.decisions, strict=True)
    return [AccessChange(after.name, action, new.allowed) for action, old, new in pairs if old.allowed != new.allowed]
