"""`?namespace=&persona=&state=…` of GET memories/."""

from collections.abc import Mapping

from django.db.models import Q
from drf_spectacular.utils import OpenApiParameter

from governance.actor import Actor
from governance.api.described import PAGE
from governance.errors import FieldError, Invalid
from governance.keys.services import token_maker
from vault.cubes.filters import filter_read, moment
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
FILTERS = (*SAME, "tag", "created_after", "created_before")
LIST_PARAMETERS = [
    *(OpenApiParameter(name, str, enum=[*kind] if kind else None) for name, kind in SAME.items()),
    OpenApiParameter("tag", str),
    OpenApiParameter("created_after", str, description="RFC 3339"),
    OpenApiParameter("created_before", str, description="RFC 3339"),
    *PAGE,
]


def list_condition(actor: Actor, asked: Mapping[str, str]) -> Q:
    """The condition that the address asks for; archived and merged memories only by `state`. Raises Invalid."""
    for name, value in asked.items():
        if "\x00" in value:
            raise Invalid(errors=[FieldError(name, "NUL cannot be searched for")])
    maker = token_maker(actor.tenant_id)
    condition = Q() if "state" in asked else Q(state__in=SHOWN)
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
