"""Search playground: one query under two settings, with the parts of each score. Nothing is stored."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import FieldError, Invalid
from governance.vocabulary import Permission
from governance.web.pages import draw, safe_page
from vault.listing.queries import LONGEST_TEXT
from vault.retrieval.fusion import Parts, Weights
from vault.retrieval.queries import SearchQuery, current_weights
from vault.retrieval.selectors import Hit, memories_compare
from vault.web.labels import make_labels
from vault.web.memory_rows import TextPiece, excerpt_mark

HITS = 15
ANY_SCORE = 1e-9  # more than nothing
PARTS: dict[str, Promise] = {
    "lexical": _("Words"),
    "context": _("Neighbours"),
    "session": _("Session"),
    "dense": _("Meaning"),
    "entity": _("People and names"),
    "time": _("Time"),
    "heat": _("Heat"),
    "trust": _("Trust"),
    "asks": _("Loss of questions"),
}


@dataclass(frozen=True)
class Row:
    """One memory of a list. moved: the number of places it rose from the first list; None if it is not in that list."""

    hit: Hit
    place: int
    moved: int | None
    pieces: tuple[TextPiece, ...]
    kind: str | Promise
    parts: tuple[tuple[str | Promise, float], ...]


@dataclass(frozen=True)
class Setting:
    """One of the two settings. name: prefix of its form fields; weights: (name, label, value) of each weight."""

    name: str
    title: str | Promise
    weights: tuple[tuple[str, Promise, float], ...]
    found: tuple[Row, ...]


@safe_page
def playground(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    authorize(actor, Permission.MEMORY_READ)
    text = request.GET.get("q", "").strip()
    fault: Invalid | None = None
    chosen = {name: current_weights() for name in ("a", "b")}
    try:
        if len(text) > LONGEST_TEXT or "\x00" in text:
            raise Invalid(errors=[FieldError("q", f"at most {LONGEST_TEXT} characters, and no NUL")])
        chosen = {name: _read_weights(request.GET, name) for name in chosen}
    except Invalid as failure:
        text, fault = "", failure
    weights = list(dict.fromkeys(chosen.values())) if text else []
    searches = [
        SearchQuery(query=text, top_k=HITS, weights=weight, min_score=ANY_SCORE, is_use=False) for weight in weights
    ]

    def draw_hits(found: list[list[Hit]]) -> HttpResponseBase:
        hits = dict(zip(weights, found, strict=True))
        return _draw_page(
            request, text, fault, chosen, {name: hits.get(weights_, []) for name, weights_ in chosen.items()}
        )

    return memories_compare(actor=actor, searches=searches, within=draw_hits)


def _draw_page(
    request: HttpRequest,
    text: str,
    fault: Invalid | None,
    chosen: Mapping[str, Weights],
    hits: Mapping[str, list[Hit]],
) -> HttpResponseBase:
    first = {hit.view.cube.id: place for place, hit in enumerate(hits["a"], start=1)}
    titles = {"a": _("First setting"), "b": _("Second setting")}
    settings = [_make_setting(name, titles[name], chosen[name], hits[name], first, text) for name in chosen]
    context = {"text": text, "settings": settings, "fault": fault}
    return draw(request, "vault/playground/playground.html", context)


def _read_weights(asked: QueryDict, name: str) -> Weights:
    """Return the weights of one setting; missing ones are the current weights. Raises Invalid."""
    given: dict[str, float] = {}
    for part in PARTS:
        field = f"{name}_{part}"
        if text := asked.get(field, ""):
            try:
                given[part] = float(text)
            except ValueError as error:
                raise Invalid(errors=[FieldError(field, "a number from 0 to 1")]) from error
            if not 0 <= given[part] <= 1:
                raise Invalid(errors=[FieldError(field, "a number from 0 to 1")])
    return replace(current_weights(), **given)


def _make_setting(
    name: str, title: str | Promise, weights: Weights, hits: list[Hit], first: Mapping[UUID, int], text: str
) -> Setting:
    values = tuple((part, label, float(getattr(weights, part))) for part, label in PARTS.items())
    return Setting(
        name, title, values, tuple(_make_row(hit, place, first, text) for place, hit in enumerate(hits, start=1))
    )


def _make_row(hit: Hit, place: int, first: Mapping[UUID, int], text: str) -> Row:
    before = first.get(hit.view.cube.id)
    return Row(
        hit=hit,
        place=place,
        moved=None if before is None else before - place,
        pieces=excerpt_mark(hit.view.words.content, text),
        kind=make_labels(hit.view.cube).semantic_type,
        parts=_name_parts(hit.parts),
    )


def _name_parts(parts: Parts) -> tuple[tuple[str | Promise, float], ...]:
    values: dict[str, Any] = asdict(parts)
    return tuple((label, values[part]) for part, label in PARTS.items() if values[part])
