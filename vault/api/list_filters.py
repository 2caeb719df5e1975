"""Filters of GET memories/: `?namespace=&persona=&state=…`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from governance.actor import Actor
from governance.api.descriptions import PAGE
from governance.errors import FieldError, Invalid
from governance.keys.services import TokenMaker, token_maker
from governance.personas.services import is_persona_name
from vault.cubes.filters import filter_read, message_condition, read_moment_or_date
from vault.cubes.persona_references import refuse_unknown_personas
from vault.retrieval.queries import SHOWN
from vault.vocabulary import Layer, ListedState, MemoryType, SemanticType, Sensitivity, Source

SAME = {
    "namespace": None,
    "persona": None,
    "state": ListedState,
    "layer": Layer,
    "type": MemoryType,
    "semantic_type": SemanticType,
    "sensitivity": Sensitivity,
    "source": Source,
    "speaker": None,
    "session_id": None,
    "message_id": None,
    "task_id": None,
    "tags": None,
}
DESCRIPTIONS = {"namespace": "Path, with all below it; or an id, without. ", "persona": "Id or name. "}
REPEATED = "Repeated: any of the values."
FILTERS = (*SAME, "created_after", "created_before", "deleted", "inactive", "filters")
LIST_PARAMETERS = [
    *(
        OpenApiParameter(
            name, str, many=True, enum=[*kind] if kind else None, description=DESCRIPTIONS.get(name, "") + REPEATED
        )
        for name, kind in SAME.items()
    ),
    OpenApiParameter("deleted", bool, description="true: deleted memories that can still be restored, and no others."),
    OpenApiParameter(
        "inactive",
        bool,
        description="true: deleted, expired and archived memories that can be restored, and no others.",
    ),
    OpenApiParameter("created_after", str, description="RFC 3339, or a date: its first moment in UTC."),
    OpenApiParameter("created_before", str, description="RFC 3339, or a date: its first moment in UTC."),
    OpenApiParameter("filters", str, description="A filter as in the body of a search, as JSON. It is ANDed."),
    *PAGE,
]


def list_condition(actor: Actor, query: QueryDict) -> Q:
    """Return the condition of the query string. Archived and merged memories need `state`.

    Raises Invalid; UnknownPersona.
    """
    chosen = {name: [value for value in query.getlist(name) if value.strip()] for name in query}
    for name, values in chosen.items():
        if any("\x00" in value for value in values):
            raise Invalid(errors=[FieldError(name, "NUL cannot be searched for")])
    asked = {name: values[-1] for name, values in chosen.items() if values}
    maker = token_maker(actor.tenant_id)
    is_inactive = asked.get("inactive") == "true"
    condition = Q() if "state" in asked or is_inactive else Q(state__in=SHOWN)
    personas = [reference for reference in chosen.get("persona", ()) if is_persona_name(reference)]
    refuse_unknown_personas(actor=actor, references=personas, field="persona")
    for name in SAME:
        if chosen.get(name):
            condition &= _any_of(maker, name, chosen[name])
    filters = _json_object(asked["filters"]) if "filters" in asked else {}
    if filters:
        condition &= filter_read(maker, filters)
    if asked.get("deleted") != "true" and not is_inactive:
        kinds = {name: {"in": chosen[name]} for name in ("semantic_type", "type") if chosen.get(name)}
        condition &= message_condition({"AND": [filters, kinds]})
    if "created_after" in asked:
        condition &= Q(created_at__gt=read_moment_or_date(asked["created_after"], "created_after"))
    if "created_before" in asked:
        condition &= Q(created_at__lt=read_moment_or_date(asked["created_before"], "created_before"))
    return condition


def _any_of(maker: TokenMaker, name: str, values: Sequence[str]) -> Q:
    """Return the condition that a memory has any of the values; a namespace is meant with all below it."""
    condition = filter_read(maker, {name: {"in": [*values]}}, path="")
    for path in values if name == "namespace" else ():
        condition |= Q(namespace__path__startswith=f"{path}/")
    return condition


def _json_object(text: str) -> Mapping[str, Any]:
    """Parse a JSON object. Raises Invalid."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(errors=[FieldError("filters", "no JSON")]) from error
    if not isinstance(found, dict):
        raise Invalid(errors=[FieldError("filters", "an object is needed")])
    return found
