"""The form of the layers' constants, and the page on which a tenant sets its own."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.vocabulary import Permission
from governance.web.page_forms import PageForm, style_fields, values_of
from governance.web.pages import draw, form_page, see_other
from vault.layers.constants import tenant_constants_get, tenant_constants_set
from vault.layers.rules import RANGES, WHOLE, Constants, merge_constants
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


class ConstantsForm(PageForm):
    """The constants of the layers. defaults: those that apply where a field is empty."""

    def __init__(self, data: Mapping[str, Any] | None, *, defaults: Constants, initial: Mapping[str, float]) -> None:
        shown = {name: format_number(value) for name, value in initial.items()}
        super().__init__(data, auto_id="%s", initial=shown)
        for name, label in CONSTANTS.items():
            low, high = RANGES[name]
            span = gettext("%(low)s to %(high)s") % {"low": format_number(low), "high": format_number(high)}
            self.fields[name] = forms.FloatField(
                label=str(label),
                required=False,
                min_value=low,
                max_value=high,
                help_text=f"{MEANINGS[name]} {span}",
                widget=forms.NumberInput(
                    attrs={
                        "placeholder": format_number(getattr(defaults, name)),
                        "step": "1" if name in WHOLE else "any",
                    }
                ),
            )
        self.order_fields(CONSTANTS)
        style_fields(self)

    def numbers(self) -> dict[str, float | None]:
        """Return the numbers that were sent, by name; None for an empty field."""
        return {name: self.cleaned_data[name] for name in CONSTANTS if name in self.data}


class LayerSettingsForm(ConstantsForm):
    """The constants of all personas without their own, and what leaves a full working set."""

    replacement = forms.ChoiceField(
        label=_("What leaves a full working set"), required=False, choices=list(POLICIES.items())
    )


@form_page
def layer_settings(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET shows the tenant's constants; POST sets the changed ones; an empty field resets to the default."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    present = tenant_constants_get(actor=actor)
    form = LayerSettingsForm(values_of(request), defaults=merge_constants(), initial=present)
    form.fields["replacement"].initial = tenant_replacement(actor=actor)

    def save() -> None:
        tenant_constants_set(actor=actor, values=form.numbers())
        if name := form.cleaned_data["replacement"]:
            tenant_replacement_set(actor=actor, name=name)

    if form.is_done_by(save):
        return see_other(f"{reverse('layer_settings')}?saved")
    context = {"form": form, "is_saved": "saved" in request.GET}
    return draw(request, "vault/layers/settings.html", context, status=form.status)


def format_number(value: float) -> str:
    return f"{value:.12g}"
