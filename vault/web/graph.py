"""Graph and timeline: the memories linked to a memory, a person or a topic, and their validity over time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.actor import Actor
from governance.errors import Invalid
from governance.time_range import is_in_range
from governance.web.pages import draw, safe_page
from governance.web.pagination import uuid_or_none
from vault.cubes.selectors import CubeView
from vault.listing.neighbourhood import Neighbourhood, neighbourhood_get
from vault.web.graph_layout import Graph, graph_draw, shorten_label
from vault.web.memory_rows import layer_class

FORMS: dict[str, Promise] = {"graph": _("Graph"), "timeline": _("Timeline"), "list": _("List")}
WEEKS = 52
FACTS, LINKS, BAR_HEIGHT = 8, 12, 38


@dataclass(frozen=True)
class Fact:
    """A memory on the timeline. since, until: its validity, as far as known."""

    view: CubeView
    layer: str
    happened: datetime
    since: datetime
    until: datetime | None


@dataclass(frozen=True)
class Week:
    """A bar of the histogram, which links to the state at the end of that week."""

    day: date
    count: int
    x: float
    y: float
    height: float
    is_on: bool


@safe_page
def graph(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    centre = request.GET.get("around", "").strip()
    memory_id = uuid_or_none(request.GET.get("memory", ""))
    at, fault = _parse_day_end(request.GET.get("at", ""))
    form = request.GET.get("form", "")
    form = form if form in FORMS else "graph"
    found, fault = _get_neighbourhood(actor, centre, memory_id, at, fault)
    drawn = graph_draw(found, centre)
    facts = sorted((_make_fact(view) for view in found.views), key=lambda fact: fact.happened, reverse=True)
    context = {
        "around": centre,
        "memory_id": memory_id,
        "at": at,
        "form": form,
        "forms": [(form, words, _graph_address(request, form=form)) for form, words in FORMS.items()],
        "found": found,
        "graph": drawn,
        "facts": facts,
        "rows": [(view, drawn.names_of[view.cube.id]) for view in found.views],
        "weeks": _count_weeks(facts, at),
        "first_week": timezone.localdate() - timedelta(weeks=WEEKS),
        "today": timezone.localdate(),
        "without_at": _graph_address(request, at=""),
        "fault": fault,
        **_list_facts_about(drawn, facts, centre),
    }
    return draw(request, "vault/graph/graph.html", context)


def _get_neighbourhood(
    actor: Actor, centre: str, memory_id: Any, at: datetime | None, fault: Invalid | None
) -> tuple[Neighbourhood, Invalid | None]:
    try:
        return neighbourhood_get(actor=actor, centre=centre, memory_id=memory_id, at=at), fault
    except Invalid as failure:
        return Neighbourhood((), (), 0), failure


def _parse_day_end(text: str) -> tuple[datetime | None, Invalid | None]:
    """Parse a date as the end of that day in the reader's time zone; None for any other text."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None, None
    end = datetime(day.year, day.month, day.day, 23, 59, 59, tzinfo=timezone.get_current_timezone())
    return (end, None) if is_in_range(end) else (None, None)


def _graph_address(request: HttpRequest, **more: str) -> str:
    asked = {name: request.GET.get(name, "") for name in ("around", "memory", "at", "form")} | more
    parts = {name: value for name, value in asked.items() if value}
    return f"{reverse('graph')}?{urlencode(parts)}" if parts else reverse("graph")


def _make_fact(view: CubeView) -> Fact:
    cube = view.cube
    happened = cube.event_time or cube.created_at
    assert isinstance(happened, datetime)
    return Fact(view, layer_class(cube.layer), happened, cube.valid_from or happened, cube.valid_to)


def _count_weeks(facts: Sequence[Fact], at: datetime | None) -> list[Week]:
    """Count the memories of each of the last weeks, oldest first."""
    today = timezone.localdate()
    ages = [(today - timezone.localdate(fact.happened)).days // 7 for fact in facts]
    counts = Counter(age for age in ages if 0 <= age < WEEKS)
    most = max(counts.values(), default=1)
    chosen = (today - timezone.localdate(at)).days // 7 if at else 0
    weeks = []
    for index, age in enumerate(range(WEEKS - 1, -1, -1)):
        height = round(max(counts[age] / most * BAR_HEIGHT, 1.5), 1)
        day = today - timedelta(weeks=age)
        weeks.append(Week(day, counts[age], round(index * 100 / WEEKS, 2), 40 - height, height, age == chosen))
    return weeks


def _list_facts_about(drawn: Graph, facts: Sequence[Fact], centre: str) -> dict[str, Any]:
    """Return the facts about the requested name."""
    on = centre.casefold().strip()
    about = [fact for fact in facts if on and on in drawn.names_of[fact.view.cube.id]]
    together: Counter[str] = Counter()
    for fact in about:
        together.update(name for name in drawn.names_of[fact.view.cube.id] if name != on)
    return {
        "about": about[:FACTS],
        "about_count": len(about),
        "first": min((fact.happened for fact in about), default=None),
        "together": [
            (name, shorten_label(name), count)
            for name, count in (together.most_common(LINKS) if on else _list_drawn_names(drawn))
        ],
    }


def _list_drawn_names(drawn: Graph) -> list[tuple[str, int]]:
    return [(node.name, node.count) for node in drawn.names][:LINKS]
