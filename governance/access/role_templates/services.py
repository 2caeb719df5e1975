"""Role templates of a tenant, and their application to a member, a persona or a key."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from django.db import IntegrityError, transaction

from governance.access.decisions.grantables import grantable_of
from governance.access.decisions.rules import ROLE_PERMISSIONS, Target
from governance.access.decisions.services import authorize
from governance.access.grants.services import GrantDraft, grant_create
from governance.actor import Actor
from governance.apikeys.services import KeyChanges, apikey_update
from governance.audit.services import record
from governance.database import acting, clear_transaction_cache
from governance.errors import Conflict, FieldError, Forbidden, Invalid, NotFound
from governance.ids import uuid7
from governance.members.services import member_role_change
from governance.models import ApiKey, Member, RoleTemplate
from governance.personas.lookup import persona_locate, persona_target
from governance.personas.services import PersonaChanges, check_attributes, persona_update
from governance.tenants.bonds import KeyBonds, check_paths
from governance.vocabulary import Action, GranteeKind, Permission, RoleName, Scope, Verb

OBJECT_TYPE = "role_template"
LONGEST_NAME = 100
APPLICABLE = (GranteeKind.MEMBER, GranteeKind.PERSONA, GranteeKind.API_KEY)


@dataclass(frozen=True)
class TemplateDraft:
    """The content of a role template. On a change, None keeps a stored part.

    role: of a member; never owner. namespaces: paths that are granted to a member and bound to a key. purpose: the
    condition of those grants, and the purpose of a key. scopes: of a key. persona_attributes: merged into a persona's.
    """

    name: str
    role: RoleName | None = None
    namespaces: tuple[str, ...] = ()
    purpose: str = ""
    scopes: tuple[Scope, ...] = ()
    persona_attributes: Mapping[str, str] = field(default_factory=dict)


def template_create(*, actor: Actor, draft: TemplateDraft) -> RoleTemplate:
    """Create a role template. Raises Forbidden; Invalid; Conflict (the name is taken). Writes: RoleTemplate,
    AuditEntry.
    """
    authorize(actor, Permission.TEMPLATE_MANAGE)
    with acting(actor):
        row = RoleTemplate(id=uuid7(), tenant_id=actor.tenant_id)
        _apply_draft(row, draft)
        _save(row, force_insert=True)
        row.refresh_from_db()  # the database sets the times
        record(actor=actor, verb=Verb.TEMPLATE_CREATED, object_type=OBJECT_TYPE, object_ids=[row.id])
    return row


def template_update(*, actor: Actor, template_id: UUID, draft: TemplateDraft) -> RoleTemplate:
    """Change a role template. Grants that it already gave stay.

    Raises NotFound; Forbidden; Invalid; Conflict. Writes: RoleTemplate, AuditEntry.
    """
    with acting(actor):
        row = template_locate(actor, template_id)
        _apply_draft(row, draft)
        _save(row)
        record(actor=actor, verb=Verb.TEMPLATE_CHANGED, object_type=OBJECT_TYPE, object_ids=[row.id])
    return row


def template_remove(*, actor: Actor, template_id: UUID) -> None:
    """Remove a template. Raises NotFound; Forbidden. Writes: deletes the RoleTemplate; AuditEntry."""
    with acting(actor):
        row = template_locate(actor, template_id)
        RoleTemplate.objects.filter(id=row.id).delete()
        record(actor=actor, verb=Verb.TEMPLATE_REMOVED, object_type=OBJECT_TYPE, object_ids=[template_id])


def template_apply(*, actor: Actor, template_id: UUID, kind: GranteeKind, holder_id: UUID) -> RoleTemplate:
    """Apply a role template to a member, a persona or a key, in one transaction.

    Raises NotFound; Forbidden; Invalid. Writes: Member, grants; or ApiKey; or Persona; AuditEntry ….
    """
    with acting(actor):
        row = template_locate(actor, template_id)
        if kind is GranteeKind.MEMBER:
            _apply_to_member(actor, row, holder_id)
        elif kind is GranteeKind.API_KEY:
            _apply_to_key(actor, row, holder_id)
        elif kind is GranteeKind.PERSONA:
            _apply_to_persona(actor, row, holder_id)
        else:
            raise Invalid(errors=[FieldError("kind", f"one of {', '.join(APPLICABLE)}")])
        record(
            actor=actor,
            verb=Verb.TEMPLATE_APPLIED,
            object_type=kind,
            object_ids=[holder_id],
            detail={"template": str(row.id)},
        )
    return row


def template_ask(*, actor: Actor, template_id: UUID) -> RoleTemplate:
    """Return the role template if the actor may manage it. Raises NotFound; Forbidden."""
    with acting(actor):
        return template_locate(actor, template_id)


def template_locate(actor: Actor, template_id: UUID) -> RoleTemplate:
    """Return the row of one template. Raises NotFound; Forbidden."""
    row = RoleTemplate.objects.filter(tenant_id=actor.tenant_id, id=template_id).first()
    if row is None:
        raise NotFound
    authorize(actor, Permission.TEMPLATE_MANAGE, Target(OBJECT_TYPE, row.id, row.tenant_id))
    return row


def draft_of(row: RoleTemplate) -> TemplateDraft:
    return TemplateDraft(
        name=row.name,
        role=RoleName(row.role) if row.role else None,
        namespaces=tuple(row.namespaces),
        purpose=row.purpose,
        scopes=tuple(Scope(scope) for scope in row.scopes),
        persona_attributes=row.persona_attributes,
    )


def _apply_to_member(actor: Actor, row: RoleTemplate, member_id: UUID) -> None:
    found = Member.objects.select_for_update(of=("self",)).select_related("role")
    member = found.filter(tenant_id=actor.tenant_id, id=member_id, removed_at=None).first()
    if member is None:
        raise NotFound
    authorize(actor, Permission.MEMBER_MANAGE, Target("member", member.id, member.tenant_id))
    if row.role and row.role != member.role.name:
        member_role_change(actor=actor, member_id=member.id, role=RoleName(row.role))
        clear_transaction_cache()
    writes = Permission.MEMORY_CREATE in ROLE_PERMISSIONS[RoleName(row.role or member.role.name)]
    for path in row.namespaces:
        grant_create(
            actor=actor,
            draft=GrantDraft(
                holder_kind=GranteeKind.MEMBER,
                holder=str(member.id),
                object_type="namespace",
                object_id=_namespace(actor, path),
                action=Action.WRITE if writes else Action.READ,
                conditions={"purpose": [row.purpose]} if row.purpose else {},
            ),
        )


def _apply_to_key(actor: Actor, row: RoleTemplate, key_id: UUID) -> None:
    stated = frozenset(part for part in ("namespaces", "purpose") if getattr(row, part))
    bonds = KeyBonds(namespaces=tuple(row.namespaces), purpose=row.purpose)
    apikey_update(actor=actor, key_id=key_id, changes=KeyChanges(given=stated, bonds=bonds))
    if row.scopes:
        if actor.scopes is not None and not actor.scopes.issuperset(row.scopes):
            raise Forbidden(
                "A key can only give scopes that it has.", permission=Permission.APIKEY_MANAGE, rule="scopes"
            )
        ApiKey.objects.filter(id=key_id).update(scopes=row.scopes)


def _apply_to_persona(actor: Actor, row: RoleTemplate, persona_id: UUID) -> None:
    persona = persona_locate(actor, persona_id)
    authorize(actor, Permission.PERSONA_UPDATE, persona_target(persona))
    laid_over = {**persona.attributes, **row.persona_attributes}
    persona_update(actor=actor, persona_id=persona_id, changes=PersonaChanges(attributes=laid_over))


def _namespace(actor: Actor, path: str) -> UUID:
    kind = grantable_of("namespace")
    found = kind.by_name(actor, path) if kind else None
    if found is None:
        raise Invalid(errors=[FieldError("namespaces", f"there is no namespace {path}")])
    return found


def _apply_draft(row: RoleTemplate, draft: TemplateDraft) -> None:
    """Check a draft and copy its parts to the row. Raises Invalid."""
    if not draft.name.strip() or len(draft.name) > LONGEST_NAME or not draft.name.isprintable():
        raise Invalid(errors=[FieldError("name", f"1 to {LONGEST_NAME} printable characters")])
    if draft.role is RoleName.OWNER:
        raise Invalid(errors=[FieldError("role", "a preset makes no owners")])
    check_attributes(draft.persona_attributes, "persona_attributes")
    row.name, row.role, row.purpose = draft.name, draft.role or "", draft.purpose
    row.namespaces = check_paths(draft.namespaces)
    row.scopes = sorted(set(draft.scopes))
    row.persona_attributes = dict(draft.persona_attributes)


def _save(row: RoleTemplate, **options: bool) -> None:
    try:
        with transaction.atomic():
            row.save(**options)  # type: ignore[arg-type]
    except IntegrityError as error:
        raise Conflict(f"There is a preset {row.name} already.") from error
