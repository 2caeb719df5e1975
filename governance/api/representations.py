"""Principals as JSON."""

from datetime import datetime
from typing import Any

from django.utils import timezone

from governance.actor import Actor
from governance.tenants.selectors import Me, PersonaView
from governance.vocabulary import Scope


def time_json(moment: datetime | None) -> str | None:
    """Return the time as RFC 3339 text in the reader's zone, which is UTC unless the call names another; or None."""
    return moment.astimezone(timezone.get_current_timezone()).isoformat().replace("+00:00", "Z") if moment else None


def me_json(actor: Actor, me: Me) -> dict[str, Any]:
    """Return the actor as JSON. `scopes` has all scopes for a browser session."""
    return {
        "principal": {
            "kind": actor.principal_kind,
            "id": str(actor.principal_id),
            "email": me.email,
            "name": me.display_name,
            "member": str(actor.member_id) if actor.member_id else None,
            "key_prefix": me.key_prefix,
            "expires_at": time_json(me.key_expires_at),
            "persona": persona_ref_json(me.bound_persona) if me.bound_persona else None,
            "namespaces": list(me.bound_namespaces),
            "purpose": me.purpose,
        },
        "tenant": {"id": str(me.tenant_id), "slug": me.tenant_slug, "name": me.tenant_name},
        "roles": [actor.role] if actor.role else [],
        "scopes": sorted(actor.scopes if actor.scopes is not None else Scope),
        "personas": [persona_ref_json(persona) for persona in me.personas],
    }


def persona_ref_json(persona: PersonaView) -> dict[str, Any]:
    return {"id": str(persona.id), "name": persona.name, "kind": persona.kind}
