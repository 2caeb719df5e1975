"""What an API key is bound to: one persona, some namespaces; and the purpose of its calls that name none."""

from dataclasses import dataclass, replace
from uuid import UUID

from governance.actor import Actor
from governance.audit.services import record
from governance.authz.rules import Target
from governance.authz.services import authorize
from governance.database import acting
from governance.errors import FieldError, Invalid, NotFound
from governance.models import ApiKey, Persona
from governance.vocabulary import Permission, PersonaKind, Verb

MOST_NAMESPACES = 50
LONGEST_PURPOSE = 200


@dataclass(frozen=True)
class KeyBonds:
    """persona_id: an agent, or a persona of the key's member. namespaces: paths; each counts with all below it."""

    persona_id: UUID | None = None
    namespaces: tuple[str, ...] = ()
    purpose: str = ""


FREE = KeyBonds()


def apikey_bind(*, actor: Actor, key_id: UUID, bonds: KeyBonds) -> ApiKey:
    """Bind a key anew, from its next request on. Raises NotFound; Forbidden; Invalid. Writes: ApiKey, AuditEntry."""
    with acting(actor):
        key = ApiKey.objects.select_for_update().filter(tenant_id=actor.tenant_id, id=key_id, revoked_at=None).first()
        if key is None:
            raise NotFound
        authorize(actor, Permission.APIKEY_MANAGE, Target("api_key", key.id, key.tenant_id))
        bonds_set(key, bonds)
        key.save(update_fields=["persona", "namespaces", "purpose"])
        record(
            actor=actor,
            verb=Verb.APIKEY_BOUND,
            object_type="api_key",
            object_ids=[key.id],
            detail={"prefix": key.prefix, **bonds_detail(key)},
        )
    return key


def bonds_set(key: ApiKey, bonds: KeyBonds) -> None:
    """Fill in the columns of a row that is not written yet; in the caller's transaction. Raises Invalid."""
    key.persona = _persona(key, bonds.persona_id)
    key.namespaces = paths_checked(bonds.namespaces)
    if len(bonds.purpose) > LONGEST_PURPOSE or not (bonds.purpose.isprintable() or not bonds.purpose):
        raise Invalid(errors=[FieldError("purpose", f"at most {LONGEST_PURPOSE} printable characters")])
    key.purpose = bonds.purpose


def bonds_detail(key: ApiKey) -> dict[str, str | int | bool | None]:
    """The bonds as the trail has them: ids and numbers."""
    return {"persona": str(key.persona_id) if key.persona_id else None, "namespaces": len(key.namespaces)}


def bonds_of(key: ApiKey) -> KeyBonds:
    return KeyBonds(key.persona_id, tuple(key.namespaces), key.purpose)


def bonds_laid_over(key: ApiKey, bonds: KeyBonds) -> KeyBonds:
    """The key's bonds with those parts of `bonds` that say something."""
    kept = bonds_of(key)
    return replace(
        kept,
        persona_id=bonds.persona_id or kept.persona_id,
        namespaces=bonds.namespaces or kept.namespaces,
        purpose=bonds.purpose or kept.purpose,
    )


def _persona(key: ApiKey, persona_id: UUID | None) -> Persona | None:
    if persona_id is None:
        return None
    found = Persona.objects.filter(tenant_id=key.tenant_id, id=persona_id, removed_at=None).first()
    if found is None or (found.kind != PersonaKind.AGENT and found.member_id != key.member_id):
        raise Invalid(errors=[FieldError("persona", "no persona of this key's member, and no agent, has this id")])
    return found


def paths_checked(paths: tuple[str, ...]) -> list[str]:
    """Each once, in the order given: a key writes to the first when a call names none. Raises Invalid."""
    if len(paths) > MOST_NAMESPACES:
        raise Invalid(errors=[FieldError("namespaces", f"at most {MOST_NAMESPACES}")])
    for path in paths:
        if not path.startswith("/") or path.endswith("/") or len(path) > 200 or not path.isprintable():
            raise Invalid(errors=[FieldError("namespaces", "paths such as /team/notes")])
    return list(dict.fromkeys(paths))
