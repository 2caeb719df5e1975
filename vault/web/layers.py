"""The layers of one persona: queue, segments by heat, profile and traits, and a replay with other constants."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.errors import FieldError
from governance.pages import First
from governance.personas.lookup import persona_target
from governance.personas.selectors import personas_list
from governance.vocabulary import Permission, PersonaKind
from governance.web.page_forms import PageForm, style_fields, values_of
from governance.web.pages import draw, form_page, safe_page, see_other, wants_part
from governance.web.pagination import uuid_or_none
from vault.layers.constants import constants_get, constants_set
from vault.layers.persona import (
    AGENT_FIELDS,
    FIELDS,
    LONGEST_NAME,
    LONGEST_VALUE,
    ProfileField,
    TraitView,
    entries_list,
    profile_get,
    profile_set,
    profile_set_ask,
    traits_list,
)
from vault.layers.replay import LATEST, Outcome, layers_replay
from vault.layers.rules import NAMES, Constants, is_hot
from vault.layers.selectors import (
    MOVING,
    SegmentView,
    last_moved_page,
    layer_counts,
    layers_state,
    segment_get,
    segments_list,
    stm_list,
    streams_list,
)
from vault.layers.traits import dimensions
from vault.layers.validity import validity_list
from vault.layers.working_set import BUDGET, working_set
from vault.vocabulary import EntryQueue
from vault.web.layer_settings import ConstantsForm, format_number
from vault.web.memory_rows import HEAT_STEPS
from vault.web.validity import FIELDS as PROFILE_FIELDS
from vault.web.validity import make_drawing
from vault.web.working_set import REASONS

SEGMENTS, TRAITS, FACTS, STATEMENTS, PERSONAS = 24, 12, 5, 100, 50
LARGE, MEDIUM = 2, 4  # numbers of segments drawn large, and then medium
GROUPS: dict[str, Promise] = {
    "personality": _("Personality and needs"),
    "alignment": _("Alignment preferences"),
    "interest": _("Content interests"),
}
OUTCOMES: dict[str, Promise] = {
    "queued": _("Pages in queues"),
    "chains": _("Topics in a row"),
    "segments": _("Segments"),
    "joined": _("Pages that joined a segment"),
    "largest": _("Pages of the largest segment"),
    "evicted": _("Segments evicted"),
    "distilled": _("Times distilled"),
    "promoted_pages": _("Pages promoted"),
}


@dataclass(frozen=True)
class Tile:
    """A segment as drawn. size: xl, l or s; level: 1..5; bars: (colour, x, width) of its heat's parts."""

    view: SegmentView
    size: str
    level: int
    is_hot: bool
    is_target: bool
    bars: tuple[tuple[int, float, float], ...]


@dataclass(frozen=True)
class Tier:
    """A tier of memory. milliseconds: in which this page read its part of it; None: it reads nothing there."""

    name: Promise
    medium: Promise
    life: Promise
    budget: str | Promise
    milliseconds: float | None


class ProfileForm(PageForm):
    """The fields of a profile, and another one. present: their values."""

    new_name = forms.CharField(
        label=_("Name of the field"),
        required=False,
        max_length=LONGEST_NAME,
        widget=forms.TextInput(attrs={"placeholder": _("Name of the field")}),
    )
    new_value = forms.CharField(
        label=_("Value"),
        required=False,
        max_length=LONGEST_VALUE,
        widget=forms.TextInput(attrs={"placeholder": _("Value")}),
    )

    def __init__(self, data: QueryDict | None, present: Mapping[str, str]) -> None:
        super().__init__(data)
        self.present = present
        for name, value in present.items():
            self.fields[f"field:{name}"] = forms.CharField(
                label=str(PROFILE_FIELDS.get(name, name)), required=False, max_length=LONGEST_VALUE, initial=value
            )
        style_fields(self)

    @property
    def present_fields(self) -> list[forms.BoundField]:
        return [self[f"field:{name}"] for name in self.present]

    def changes(self) -> dict[str, str | None]:
        """Return the changed values by the names of their fields; None for an emptied one."""
        values = {name: self.cleaned_data[f"field:{name}"] for name in self.present if f"field:{name}" in self.data}
        if name := self.cleaned_data["new_name"]:
            values[name] = self.cleaned_data["new_value"]
        return {name: value or None for name, value in values.items() if self.present.get(name, "") != value}

    def blame_field(self, fault: FieldError) -> None:
        name = f"field:{fault.field}" if fault.field in self.present else "new_name"
        super().blame_field(FieldError(name, fault.message))


@safe_page
def layers(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the layers of a persona. The page polls its main part, which is sent only if something has changed."""
    authorize(actor, Permission.MEMORY_READ)
    personas = personas_list(actor=actor, pages=First(PERSONAS))
    wanted = uuid_or_none(request.GET.get("persona", "")) or actor.persona_id
    own = [persona for persona in personas if persona.member_id == actor.member_id and persona.kind == PersonaKind.USER]
    if not personas:
        return draw(request, "vault/layers/layers.html", {"persona": None})
    chosen = next((persona for persona in personas if persona.id == wanted), (own or personas)[-1])
    shown = {
        "personas": personas,
        "persona": chosen,
        "may_edit": is_allowed(actor, Permission.PERSONA_UPDATE, persona_target(chosen)),
    }
    if chosen.kind == PersonaKind.AGENT:
        return draw(request, "vault/layers/layers.html", _agent_context(actor, chosen.id) | shown)
    state = layers_state(actor=actor, persona_id=chosen.id)
    if wants_part(request) and request.GET.get("since") == state:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    context = _user_context(actor, chosen.id, uuid_or_none(request.GET.get("stream", ""))) | shown
    asked = {"persona": chosen.id, "stream": context["stream"].id if context["stream"] else "", "since": state}
    template = "vault/layers/_mind.html" if wants_part(request) else "vault/layers/layers.html"
    return draw(request, template, context | {"again": f"{reverse('layers')}?{urlencode(asked)}"})


@safe_page
def segment(request: HttpRequest, actor: Actor, persona_id: UUID, segment_id: UUID) -> HttpResponseBase:
    view, pages = segment_get(actor=actor, persona_id=persona_id, segment_id=segment_id)
    return draw(request, "vault/layers/segment.html", {"view": view, "pages": pages, "persona_id": persona_id})


@safe_page
def traits(request: HttpRequest, actor: Actor, persona_id: UUID) -> HttpResponseBase:
    found = traits_list(actor=actor, persona_id=persona_id)
    context = {"groups": group_traits(found), "known": len(found), "all": len(dimensions()), "persona_id": persona_id}
    return draw(request, "vault/layers/traits.html", context)


@form_page
def profile(request: HttpRequest, actor: Actor, persona_id: UUID) -> HttpResponseBase:
    """GET shows the profile fields; POST writes the changed ones."""
    is_agent = profile_set_ask(actor=actor, persona_id=persona_id).kind == PersonaKind.AGENT
    present = {field.name: field.value for field in profile_get(actor=actor, persona_id=persona_id)}
    form = ProfileForm(values_of(request), dict.fromkeys(AGENT_FIELDS if is_agent else FIELDS, "") | present)
    if form.is_done_by(lambda: profile_set(actor=actor, persona_id=persona_id, values=form.changes())):
        return see_other(f"{reverse('layers')}?persona={persona_id}")
    return draw(request, "vault/layers/profile.html", {"form": form, "persona_id": persona_id}, status=form.status)


@form_page
def tune(request: HttpRequest, actor: Actor, persona_id: UUID) -> HttpResponseBase:
    """GET replays the newest pages with the constants of the query string; POST saves the constants."""
    present = constants_get(actor=actor, persona_id=persona_id)
    values = {name: getattr(present, name) for name in NAMES}
    sent = request.POST if request.method == "POST" else request.GET
    shown = {name: format_number(value) for name, value in values.items()}
    form = ConstantsForm(shown | sent.dict(), defaults=present, initial=values)

    def tried() -> dict[str, float | None]:
        """Return the constants that differ from the present ones; None for an emptied field."""
        return {name: value for name, value in form.numbers().items() if name in sent and value != values[name]}

    if request.method == "POST":
        if form.is_done_by(lambda: constants_set(actor=actor, persona_id=persona_id, values=tried())):
            return see_other(f"{reverse('layers')}?persona={persona_id}")
        outcomes = None
    else:
        outcomes = form.made_by(lambda: _replay_changes(actor, persona_id, tried()))
    context = {"form": form, "outcomes": outcomes, "latest": LATEST, "persona_id": persona_id}
    return draw(request, "vault/layers/tune.html", context, status=form.status)


def _replay_changes(actor: Actor, persona_id: UUID, values: Mapping[str, float | None]) -> Mapping[str, Any]:
    trial = {name: value for name, value in values.items() if value is not None}
    return _compare_outcomes(*layers_replay(actor=actor, persona_id=persona_id, values=trial))


def _user_context(actor: Actor, persona_id: UUID, stream_id: UUID | None) -> dict[str, Any]:
    streams = streams_list(actor=actor, persona_id=persona_id)
    stream = next((stream for stream in streams if stream.id == stream_id), streams[0] if streams else None)
    constants = constants_get(actor=actor, persona_id=persona_id)
    times: dict[str, float] = {}
    with _timed(times, "short"):
        queue = stm_list(
            actor=actor,
            persona_id=persona_id,
            pages=First(constants.stm_pages),
            stream_id=stream.id if stream else None,
        )
    with _timed(times, "mid"):
        segments = segments_list(actor=actor, persona_id=persona_id, pages=First(SEGMENTS))
    found = traits_list(actor=actor, persona_id=persona_id)
    with _timed(times, "working"):
        working = working_set(actor=actor, persona_id=persona_id)
    with _timed(times, "long"):
        facts = entries_list(actor=actor, persona_id=persona_id, queue=EntryQueue.KNOWLEDGE, pages=First(FACTS))
    counts = layer_counts(actor=actor, persona_id=persona_id, stream_id=stream.id if stream else None)
    tokens = sum(item.tokens for item in working)
    leaving = last_moved_page(actor=actor, persona_id=persona_id, stream_id=stream.id) if stream else None
    return {
        "streams": streams,
        "stream": stream,
        "constants": constants,
        "queue": queue,
        "is_full": len(queue) == constants.stm_pages,
        "leaving": leaving,
        "fresh": timezone.now() - MOVING,
        "counts": counts,
        "tiles": _make_tiles(segments, constants, counts.last_segment),
        "hidden_segments": max(counts.segments - len(segments), 0),
        "last": counts,
        "profile": _name_profile_fields(actor, persona_id),
        "statements": entries_list(actor=actor, persona_id=persona_id, queue=EntryQueue.AGENT, pages=First(FACTS)),
        "groups": group_traits(found[:TRAITS]),
        "known_traits": len(found),
        "all_traits": len(dimensions()),
        "facts": facts,
        "tiers": _make_tiers(constants, times),
        "timeline": make_drawing(validity_list(actor=actor, persona_id=persona_id), timezone.now()),
        "working": [(item, REASONS.get(item.reason, item.reason)) for item in working[:6]],
        "tokens": tokens,
        "budget": BUDGET,
        "filled": round(tokens * 100 / BUDGET, 1),
    }


@contextmanager
def _timed(times: dict[str, float], name: str) -> Iterator[None]:
    """Measure the block in milliseconds."""
    began = time.perf_counter()
    yield
    times[name] = (time.perf_counter() - began) * 1000


def _make_tiers(constants: Constants, times: Mapping[str, float]) -> list[Tier]:
    """Return the tiers of memory, the nearest to a model first. times: of the reads of this page, by tier."""
    pages, segments, entries = constants.stm_pages, constants.segments, constants.entries
    sealed = _("sealed rows of the database")
    return [
        Tier(
            _("Working set"),
            _("list of references, opened for each reader"),
            _("until the next turn"),
            _("%(n)d tokens") % {"n": BUDGET},
            times["working"],
        ),
        Tier(
            _("Short term"),
            sealed,
            _("until newer pages come"),
            _("%(n)d pages") % {"n": pages},
            times["short"],
        ),
        Tier(_("Mid term"), sealed, _("by heat"), _("%(n)d segments") % {"n": segments}, times["mid"]),
        Tier(
            _("Long term"),
            sealed,
            _("until a policy ends it"),
            _("%(n)d in each queue") % {"n": entries},
            times["long"],
        ),
        Tier(_("Archive"), _("blob store"), _("until a policy ends it"), _("no limit"), None),
    ]


def _agent_context(actor: Actor, persona_id: UUID) -> dict[str, Any]:
    return {
        "profile": _name_profile_fields(actor, persona_id),
        "statements": entries_list(actor=actor, persona_id=persona_id, queue=EntryQueue.AGENT, pages=First(STATEMENTS)),
    }


def _name_profile_fields(actor: Actor, persona_id: UUID) -> list[tuple[Promise | str, ProfileField]]:
    return [
        (PROFILE_FIELDS.get(field.name, field.name), field) for field in profile_get(actor=actor, persona_id=persona_id)
    ]


def _make_tiles(segments: Sequence[SegmentView], constants: Constants, target: UUID | None) -> list[Tile]:
    tiles = []
    for place, view in enumerate(segments):
        size = "xl" if place < LARGE else "l" if place < LARGE + MEDIUM else "s"
        level = 1 + sum(view.heat >= step for step in HEAT_STEPS)
        tiles.append(
            Tile(
                view,
                size,
                level,
                is_hot(view.state, constants),
                view.row.id == target,
                _make_bars(view, segments[0].heat),
            )
        )
    return tiles


def _make_bars(view: SegmentView, hottest: float) -> tuple[tuple[int, float, float], ...]:
    bars, x = [], 0.0
    for colour, part in enumerate(view.parts, start=1):
        width = part * 100 / hottest if hottest else 0.0
        bars.append((colour, round(x, 1), round(max(width - 0.8, 0.0), 1)))
        x += width
    return tuple(bars)


def group_traits(found: Sequence[TraitView]) -> list[tuple[Promise, list[tuple[str, TraitView]]]]:
    """Return traits with their names in the reader's language, by group."""
    chinese = (get_language() or "").startswith("zh")
    groups = []
    for code, label in GROUPS.items():
        some = [
            (trait.dimension.name_zh if chinese else trait.dimension.name, trait)
            for trait in found
            if trait.dimension.group == code
        ]
        if some:
            groups.append((label, some))
    return groups


def _compare_outcomes(now: Outcome, tried: Outcome) -> Mapping[str, Any]:
    rows = [(label, getattr(now, name), getattr(tried, name)) for name, label in OUTCOMES.items()]
    return {"pages": now.pages, "rows": rows}
