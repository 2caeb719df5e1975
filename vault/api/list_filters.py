"""Filters of GET memories/: `?namespace=&persona=&state=…`."""

import json
from collections.abc import Mapping
from typing import Any

from django.db.models import Q
from drf_spectacular.utils import OpenApiParameter

from governance.actor import Actor
from governance.api.descriptions import PAGE
from governance.errors import FieldError, Invalid
from governance.keys.services import token_maker
from vault.cubes.filters import filter_read, message_condition, read_moment_or_date
from vault.retrieval.queries import SHOWN
from vault.vocabulary import Layer, MemoryType, SemanticType, Sensitivity, Source, State

SAME = {
    "namespace": None,
    "persona": None,
    "state": State,
    "layer": Layer,
    "type": MemoryType,
    "semantic_type": SemanticType,
    "sensitivity": Sensitivity,
    "source": Source,
    "speaker": None,
    "session_id": None,
    "message_id": None,
    "task_id": None,
}
DESCRIPTIONS = {"namespace": "Path, with all below it; or an id, without.", "persona": "Id or name."}
FILTERS = (*SAME, "tag", "created_after", "created_before", "deleted", "inactive", "filters")
LIST_PARAMETERS = [
    *(
        OpenApiParameter(name, str, enum=[*kind] if kind else None, description=DESCRIPTIONS.get(name, ""))
        for name, kind in SAME.items()
    ),
    OpenApiParameter("deleted", bool, description="true: deleted memories that can still be restored, and no others."),
    OpenApiParameter(
        "inactive",
        bool,
        description="true: deleted, expired and archived memories that can be restored, and no others.",
    ),
    OpenApiParameter("tag", str),
    OpenApiParameter("created_after", str, description="RFC 3339, or a date: its first moment in UTC."),
    OpenApiParameter("created_before", str, description="RFC 3339, or a date: its first moment in UTC."),
    OpenApiParameter("filters", str, description="A filter as in the body of a search, as JSON. It is ANDed."),
    *PAGE,
]


def list_condition(actor: Actor, asked: Mapping[str, str]) -> Q:
    """Return the condition of the query string. Archived and merged memories need `state`. Raises Invalid."""
    for name, value in asked.items():
        if "\x00" in value:
            raise Invalid(errors=[FieldError(name, "NUL cannot be searched for")])
    asked = {name: value for name, value in asked.items() if value.strip()}
    maker = token_maker(actor.tenant_id)
    is_inactive = asked.get("inactive") == "true"
    condition = Q() if "state" in asked or is_inactive else Q(state__in=SHOWN)
    for name, value in asked.items():
        if name in SAME:
            found = filter_read(maker, {name: value}, path="")
            condition &= found | Q(namespace__path__startswith=f"{value}/") if name == "namespace" else found
    if "tag" in asked:
        condition &= Q(tags__contains=[asked["tag"]])
    filters = _json_object(asked["filters"]) if "filters" in asked else {}
    if filters:
        condition &= filter_read(maker, filters)
    if asked.get("deleted") != "true" and not is_inactive:
        condition &= message_condition({"AND": [filters, {"semantic_type": asked.get("semantic_type")}]})
    if "created_after" in asked:
        condition &= Q(created_at__gt=read_moment_or_date(asked["created_after"], "created_after"))
    if "created_before" in asked:
        condition &= Q(created_at__lt=read_moment_or_date(asked["created_before"], "created_before"))
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
