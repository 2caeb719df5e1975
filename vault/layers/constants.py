"""The constants of a persona: defaults, overridden by the tenant's values and then by the persona's own."""

from collections.abc import Mapping
from uuid import UUID

from django.db.models import Q

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, cached_in_transaction, clear_transaction_cache
from governance.errors import FieldError, Invalid
from governance.personas.lookup import OBJECT_TYPE, persona_locate, persona_target
from governance.prepared import prepared_cursor
from governance.vocabulary import Permission, Verb
from vault.layers.rules import NAMES, RANGES, WHOLE, Constants, merge_constants
from vault.models import LayerSettings

IN_FORCE = """
SELECT values FROM vault_layersettings
WHERE persona_id = %s OR persona_id IS NULL
ORDER BY persona_id NULLS FIRST
"""


def constants_get(*, actor: Actor, persona_id: UUID) -> Constants:
    """Return the constants in force for a persona that the actor may use. Raises NotFound; Forbidden."""
    with acting(actor):
        authorize(actor, Permission.PERSONA_USE, persona_target(persona_locate(actor, persona_id)))
        return constants_in_force(persona_id)


def constants_in_force(persona_id: UUID) -> Constants:
    """Return the constants of a persona of the transaction's tenant. One query, cached until the transaction ends."""

    def find() -> Constants:
        with prepared_cursor() as cursor:
            cursor.execute(IN_FORCE, [persona_id])
            return merge_constants(*(values for (values,) in cursor.fetchall()))

    return cached_in_transaction(("layer constants", persona_id), find)


def constants_set(*, actor: Actor, persona_id: UUID, values: Mapping[str, float | None]) -> Constants:
    """Set constants of a persona; None removes a value.

    Raises NotFound; Forbidden; Invalid. Writes: LayerSettings, AuditEntry.
    """
    with acting(actor):
        authorize(actor, Permission.PERSONA_UPDATE, persona_target(persona_locate(actor, persona_id, lock=True)))
        _write_constants(actor, persona_id, values)
        record(
            actor=actor,
            verb=Verb.PERSONA_CHANGED,
            object_type=OBJECT_TYPE,
            object_ids=[persona_id],
            detail={"part": "layers"},
        )
        clear_transaction_cache()
        return constants_in_force(persona_id)


def tenant_constants_get(*, actor: Actor) -> dict[str, float]:
    """Return the constants that the tenant sets, by name; the others have their defaults. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        return _tenant_values()


def tenant_constants_set(*, actor: Actor, values: Mapping[str, float | None]) -> dict[str, float]:
    """Set constants for all personas of the tenant without values of their own; None removes a value.

    Raises Forbidden; Invalid. Writes: LayerSettings, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        _write_constants(actor, None, values)
        record(
            actor=actor,
            verb=Verb.PERSONA_CHANGED,
            object_type="tenant",
            object_ids=[actor.tenant_id],
            detail={"part": "layers"},
        )
        clear_transaction_cache()
        return _tenant_values()


def constants_check(values: Mapping[str, float]) -> Constants:
    """Return the defaults changed by `values`, for a trial that stores nothing. Raises Invalid."""
    _refuse_out_of_range(values)
    return merge_constants(values)


def _tenant_values() -> dict[str, float]:
    rows = LayerSettings.objects.filter(persona=None).values_list("values", flat=True)
    return {name: value for values in rows for name, value in values.items() if name in RANGES}


def _write_constants(actor: Actor, persona_id: UUID | None, values: Mapping[str, float | None]) -> None:
    _refuse_out_of_range(values)
    here = Q(persona=None) if persona_id is None else Q(persona_id=persona_id)
    row = LayerSettings.objects.select_for_update().filter(here).first()
    row = row or LayerSettings(tenant_id=actor.tenant_id, persona_id=persona_id, values={})
    merged = {**row.values, **values}
    row.values = {name: value for name, value in merged.items() if value is not None}
    row.save()


def _refuse_out_of_range(values: Mapping[str, float | None]) -> None:
    faults = []
    for name, value in values.items():
        if name not in RANGES:
            faults.append(FieldError(name, f"unknown; known are {', '.join(NAMES)}"))
        elif value is not None and not (RANGES[name][0] <= value <= RANGES[name][1]):
            low, high = RANGES[name]
            faults.append(FieldError(name, f"{low:g} to {high:g}"))
        elif value is not None and name in WHOLE and value != int(value):
            faults.append(FieldError(name, "a whole number is needed"))
    if faults:
        raise Invalid(errors=faults)
