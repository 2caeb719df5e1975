"""The form of the layers' constants, and the page on which a tenant sets its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import FieldError, Invalid
from governance.vocabulary import Permission
from governance.web.pages import draw, form_page, see_other
from vault.layers.constants import tenant_constants_get, tenant_constants_set
from vault.layers.rules import NAMES, RANGES, WHOLE, merge_constants
from vault.scheduler.services import tenant_replacement, tenant_replacement_set
from vault.web.working_set import POLICIES

CONSTANTS: dict[str, Promise] = {
    "stm_pages": _("Pages of the queue"),
    "theta": _("Gate of a segment (θ)"),
    "tau": _("Heat that distils (τ)"),
    "mu": _("Seconds of recency (μ)"),
    "alpha": _("Weight of visits (α)"),
    "beta": _("Weight of pages (β)"),
    "gamma": _("Weight of recency (γ)"),
    "segments": _("Segments"),
    "entries": _("Entries of each queue"),
    "continuity": _("Similarity that continues a topic"),
    "chain_gap": _("Seconds that end a topic"),
    "top_segments": _("Segments of an answer"),
    "top_pages": _("Pages of an answer"),
    "top_entries": _("Entries of an answer"),
    "gate": _("Gate of an answer"),
}
# The effect of each constant, in words.
MEANINGS: dict[str, Promise] = {
    "stm_pages": _("More: a conversation stays longer in short-term memory."),
    "theta": _("Higher: fewer pages join a segment, and there are more segments."),
    "tau": _("Lower: segments are distilled into long-term memory sooner."),
    "mu": _("Longer: a segment stays hot for longer after its last visit."),
    "alpha": _("Higher: searches and visits heat a segment more."),
    "beta": _("Higher: long segments are hotter."),
    "gamma": _("Higher: recent segments are hotter."),
    "segments": _("Beyond this number the coldest segment leaves."),
    "entries": _("Beyond this number the oldest entry leaves."),
    "continuity": _("Higher: topics are shorter."),
    "chain_gap": _("After such a pause a new topic begins."),
    "top_segments": _("More: an answer looks at more segments."),
    "top_pages": _("More: an answer reads more pages."),
    "top_entries": _("More: an answer reads more long-term entries."),
    "gate": _("Higher: answers leave out what fits less."),
}


@dataclass(frozen=True)
class NumberInput:
    """A constant in a form. value: as typed or set; default: the value that applies if the field is empty."""

    name: str
    label: Promise
    meaning: Promise
    value: str
    default: str
    low: str
    high: str
    step: str
    fault: str = ""


@form_page
def layer_settings(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET shows the tenant's constants; POST sets the changed ones; an empty field resets to the default."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    present = tenant_constants_get(actor=actor)
    typed: Mapping[str, str] = {name: format_number(value) for name, value in present.items()}
    faults: Sequence[FieldError] = ()
    status = HTTPStatus.OK
    if request.method == "POST":
        try:
            tenant_constants_set(actor=actor, values=read_numbers(request.POST))
            if "replacement" in request.POST:
                tenant_replacement_set(actor=actor, name=request.POST["replacement"])
            return see_other(f"{reverse('layer_settings')}?saved")
        except Invalid as failure:
            typed = {name: str(request.POST.get(name, "")) for name in NAMES}
            faults, status = failure.errors, HTTPStatus.UNPROCESSABLE_ENTITY
    defaults = merge_constants()
    context = {
        "fields": make_inputs(typed, {name: getattr(defaults, name) for name in NAMES}, faults),
        "is_saved": "saved" in request.GET,
        "policies": POLICIES.items(),
        "replacement": tenant_replacement(actor=actor),
    }
    return draw(request, "vault/layers/settings.html", context, status=status)


def make_inputs(
    typed: Mapping[str, str], defaults: Mapping[str, float], faults: Sequence[FieldError] = ()
) -> list[NumberInput]:
    """Return the fields of the form, each with its range and the error of its value."""
    wrong = {fault.field: fault.message for fault in faults}
    return [
        NumberInput(
            name,
            label,
            MEANINGS[name],
            typed.get(name, ""),
            format_number(defaults[name]),
            format_number(RANGES[name][0]),
            format_number(RANGES[name][1]),
            "1" if name in WHOLE else "any",
            wrong.get(name, ""),
        )
        for name, label in CONSTANTS.items()
    ]


def read_numbers(form: QueryDict) -> dict[str, float | None]:
    """Read the numbers of a form by name; None for an empty field. Raises Invalid naming each value that is no
    number."""
    found: dict[str, float | None] = {}
    faults = []
    for name in NAMES:
        if name not in form:
            continue
        text = str(form[name]).strip()
        try:
            found[name] = float(text) if text else None
        except ValueError:
            faults.append(FieldError(name, "a number is needed"))
    if faults:
        raise Invalid(errors=faults)
    return found


def format_number(value: float) -> str:
    return f"{value:.12g}"
