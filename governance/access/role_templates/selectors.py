"""Selectors of role templates."""

from uuid import UUID

from governance.access.decisions.services import authorize
from governance.access.grants.grantees import Grantee
from governance.access.grants.overview import MOST_HOLDERS
from governance.access.role_templates.services import OBJECT_TYPE, template_locate
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.models import ApiKey, Member, RoleTemplate
from governance.pages import Pages
from governance.personas.selectors import personas_of
from governance.vocabulary import GranteeKind, Permission, Verb


def templates_list(*, actor: Actor, pages: Pages) -> list[RoleTemplate]:
    """Return a page of the tenant's role templates, newest first. Raises Forbidden. Writes: AuditEntry."""
    authorize(actor, Permission.TEMPLATE_MANAGE)
    with acting(actor):
        page = list(pages.take(RoleTemplate.objects.filter(tenant_id=actor.tenant_id).order_by("-id")))
        record(actor=actor, verb=Verb.TEMPLATE_READ, object_type=OBJECT_TYPE, object_ids=[row.id for row in page])
        return page


def template_get(*, actor: Actor, template_id: UUID) -> RoleTemplate:
    """Return one template. Raises NotFound; Forbidden. Writes: AuditEntry."""
    with acting(actor):
        row = template_locate(actor, template_id)
        record(actor=actor, verb=Verb.TEMPLATE_READ, object_type=OBJECT_TYPE, object_ids=[row.id])
        return row


def applicable(*, actor: Actor) -> list[Grantee]:
    """Return the members, keys and usable personas to which a role template can be applied. Raises Forbidden."""
    authorize(actor, Permission.TEMPLATE_MANAGE)
    with acting(actor):
        members = Member.objects.filter(tenant_id=actor.tenant_id, removed_at=None).order_by("display_name")
        keys = ApiKey.objects.filter(tenant_id=actor.tenant_id, revoked_at=None).order_by("name")
        personas = personas_of(actor)
        return [
            *(Grantee(GranteeKind.MEMBER, member.id, member.display_name) for member in members[:MOST_HOLDERS]),
            *(
                Grantee(GranteeKind.PERSONA, persona.id, persona.name)
                for persona in personas.order_by("name")[:MOST_HOLDERS]
            ),
            *(Grantee(GranteeKind.API_KEY, key.id, f"{key.name} {key.prefix}".strip()) for key in keys[:MOST_HOLDERS]),
        ]
