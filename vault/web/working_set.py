"""The working set of a persona: its memories with their reasons, its predictors, and a replay of each policy."""

import time
from http import HTTPStatus
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.errors import Invalid
from governance.personas.lookup import persona_target
from governance.personas.selectors import persona_get
from governance.vocabulary import Permission
from governance.web.pages import draw, form_page, see_other
from vault.chat.selectors import Retrieved
from vault.forms.rules import Form, FormReason
from vault.layers.working_set import BUDGET, STABLE, working_set
from vault.scheduler.replacement import ReplacementName
from vault.scheduler.selectors import scheduler_state, working_sets_replay
from vault.scheduler.services import replacement_set
from vault.vocabulary import Composition

REASONS: dict[str, Promise] = {
    "profile": _("always: your profile"),
    "pinned": _("always: high priority"),
    "mounted": _("mounted"),
    "recent": _("among the newest"),
    "results": _("found for the last question"),
    "topic": _("near the topic"),
    "beside": _("said beside what was used"),
    "session": _("said in the session of what was used"),
    "graph": _("linked to what was used"),
    "together": _("used together before"),
    "hour": _("often used at this time"),
    "dates": _("happens soon"),
    "kept": _("kept from the turn before"),
    "hot_topic": _("hot topic"),
    "new_entry": _("new"),
}
POLICIES: dict[str, Promise] = {
    ReplacementName.KEEP: _("Age, use, importance and priority"),
    ReplacementName.LRU: _("Used least recently leaves"),
    ReplacementName.HEAT: _("Used least often leaves"),
    ReplacementName.SEMANTIC: _("Far from the topic leaves"),
    ReplacementName.LABEL: _("Without a tag in common leaves"),
}
PLACES: dict[str, Promise] = {
    "stable": _("As text, before the conversation"),
    "working": _("As text, after the conversation"),
    "": _("As text, with the question"),
    "block": _("As text, at the head of the prompt"),
}
AS_CACHE = _("As a cache, at the head of the prompt")
AS_MOVED_CACHE = _("As a cache, moved behind another one")
AS_ADAPTER = _("As an adapter, not in the prompt")
FORM_REASONS: dict[str, Promise] = {
    FormReason.FASTER: _("mounted; the first word comes after %(cache)s s instead of %(text)s s as text"),
    FormReason.TEXT_IS_FASTER: _("mounted; as text it is as fast: %(text)s s, as a cache %(cache)s s"),
    FormReason.NO_ENGINE: _("mounted; the model that answered can load no caches or adapters"),
    FormReason.OTHER_MODEL: _("mounted; it was made for another model"),
    FormReason.MOUNTED: _("what answers was trained into an approved adapter"),
    FormReason.NOT_TRAINED: _("in an adapter, which was not trained on all that answers: everything was read as text"),
    FormReason.NOT_LOADED: _("mounted; the engine did not take it"),
    FormReason.MOVED: _("%(composition)s; its part takes %(cache)s s instead of %(text)s s as text"),
}
COMPOSITIONS: dict[str, Promise] = {
    Composition.EXACT: _("exact: at the head of a prompt alone"),
    Composition.ROTATED: _("rotated: its keys are turned to its place"),
    Composition.RECOMPUTE_12: _("rotated, and its first 12 tokens are read again"),
    Composition.RECOMPUTE_32: _("rotated, and its first 32 tokens are read again"),
}
SHOWN = 30  # memories of the set
BUDGETS = (1_000, 2_000, 4_000, BUDGET)  # of a replay


def explain_place(retrieved: Retrieved) -> tuple[Promise, Promise | str]:
    """Return why a memory entered a prompt in its form and at its place."""
    place = {Form.CACHE: AS_CACHE, Form.ADAPTER: AS_ADAPTER}.get(Form(retrieved.form)) or PLACES[retrieved.tier]
    if retrieved.composition:
        place = AS_MOVED_CACHE
    if told := FORM_REASONS.get(retrieved.form_reason):
        seconds = {"cache": f"{retrieved.cache_seconds:.2f}", "text": f"{retrieved.text_seconds:.2f}"}
        return place, str(told) % {**seconds, "composition": COMPOSITIONS.get(retrieved.composition, "")}
    return place, REASONS.get(retrieved.why, _("the search found it"))


@form_page
def working_set_page(request: HttpRequest, actor: Actor, persona_id: UUID) -> HttpResponseBase:
    """GET shows the set and replays the last turns with each policy; POST chooses the policy."""
    if request.method == "POST":
        replacement_set(actor=actor, persona_id=persona_id, name=request.POST.get("replacement", ""))
        return see_other(reverse("layers_working_set", args=[persona_id]))
    budget = _read_budget(request)
    began = time.perf_counter()
    items = working_set(actor=actor, persona_id=persona_id)
    seconds, tokens = time.perf_counter() - began, sum(item.tokens for item in items)
    best = sorted(items, key=lambda item: (item.tier != STABLE, -item.score))
    persona = persona_get(actor=actor, reference=str(persona_id))
    state = scheduler_state(actor=actor, persona_id=persona_id)
    replayed = working_sets_replay(actor=actor, persona_id=persona_id, budget=budget)
    context = {
        "persona": persona,
        "items": [(item, REASONS.get(item.reason, item.reason)) for item in best[:SHOWN]],
        "more": max(len(items) - SHOWN, 0),
        "tokens": tokens,
        "budget": BUDGET,
        "state": state,
        "predictors": [(REASONS.get(predictor.name, predictor.name), predictor) for predictor in state.predictors],
        "policies": [
            (name, POLICIES[name], outcome, _in_milliseconds(outcome.saved_seconds(seconds, tokens)))
            for name, outcome in replayed.items()
        ],
        "budgets": BUDGETS,
        "tried": budget,
        "turns": next(iter(replayed.values())).turns,
        "may_edit": is_allowed(actor, Permission.PERSONA_UPDATE, persona_target(persona)),
    }
    return draw(request, "vault/layers/working_set.html", context, status=HTTPStatus.OK)


def _in_milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def _read_budget(request: HttpRequest) -> int:
    text = request.GET.get("budget", str(BUDGETS[1]))
    if text not in map(str, BUDGETS):
        raise Invalid
    return int(text)
