"""`?namespace=&persona=&state=…` of GET memories/."""

from collections.abc import Mapping

from django.db.models import Q
from drf_spectacular.utils import OpenApiParameter

from governance.actor import Actor
from governance.errors import FieldError, Invalid
from governance.keys.services import token_maker
from vault.retrieval.filters import filter_read, moment
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
PAGING = ("page_size", "cursor")
SHOWN_STATES = (State.GENERATED, State.ACTIVATED)
LIST_PARAMETERS = [
    *(OpenApiParameter(name, str, enum=[*kind] if kind else None) for name, kind in SAME.items()),
    OpenApiParameter("tag", str),
    OpenApiParameter("created_after", str, description="RFC 3339"),
    OpenApiParameter("created_before", str, description="RFC 3339"),
    OpenApiParameter("page_size", int),
    OpenApiParameter("cursor", str),
]


def list_condition(actor: Actor, asked: Mapping[str, str]) -> Q:
    """The condition that the address asks for; archived and merged memories only by `state`. Raises Invalid."""
    known = {*SAME, "tag", "created_after", "created_before", *PAGING}
    for name, value in asked.items():
        if name not in known:
            raise Invalid(errors=[FieldError(name, f"unknown; known are {', '.join(sorted(known))}")])
        if "\x00" in value:
            raise Invalid(errors=[FieldError(name, "NUL cannot be searched for")])
    maker = token_maker(actor.tenant_id)
    condition = Q() if "state" in asked else Q(state__in=SHOWN_STATES)
    for name, value in asked.items():
        if name in SAME:
            condition &= filter_read(maker, {name: value}, path="")
    if "tag" in asked:
        condition &= Q(tags__contains=[asked["tag"]])
    if "created_after" in asked:
        condition &= Q(created_at__gt=moment(asked["created_after"], "created_after"))
    if "created_before" in asked:
        condition &= Q(created_at__lt=moment(asked["created_before"], "created_before"))
    return condition
