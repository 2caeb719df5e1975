"""Forms: which memories are a cache or an adapter, what each saves and why; made, approved, mounted, erased here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django import forms as fields
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.errors import FieldError, Invalid
from governance.pages import First
from governance.personas.selectors import personas_list
from governance.vocabulary import Permission
from governance.web.page_forms import PageForm, values_of
from governance.web.pages import draw, form_page, post_page, see_other
from vault.conversion.services import (
    GENTLER,
    LONGEST_TITLE,
    MORE_ROUNDS,
    ConversionDraft,
    Estimate,
    conversion_estimate,
    conversion_request,
    namespace_memories,
)
from vault.cubes.selectors import CubeView
from vault.forms.rules import Form
from vault.forms.selectors import FormView, form_get, form_parents, forms_list, forms_waiting
from vault.forms.services import FormChanges, form_approve, form_remove, form_update
from vault.listing.selectors import paths_list
from vault.namespaces.mounts import LONGEST_TASK
from vault.namespaces.rules import LONGEST_PATH
from vault.vocabulary import Composition, MemoryType
from vault.web.working_set import COMPOSITIONS

MOST_PERSONAS = 200
KINDS: dict[MemoryType, Promise] = {
    MemoryType.ACTIVATION: gettext_lazy("Cache"),
    MemoryType.PARAMETER: gettext_lazy("Adapter"),
}

PARTS: dict[str, Promise] = {  # of an examination
    "exact": gettext_lazy("facts"),
    "paraphrases": gettext_lazy("paraphrases"),
    "strangers": gettext_lazy("strangers"),
    "general": gettext_lazy("general prompts"),
    "perplexity": gettext_lazy("perplexity"),
}
POLICY = re.compile(r"policy:(.+?)@(\d+)(?= policy:|$)")  # a rule, joined to others by spaces
NEEDED = {"mount": "persona", "task": "task", "compose": "composition"}  # the field that each action changes
LEARNED = {"exact", "paraphrases"}  # limits that more rounds of training reach; the others are of harm to the base


@dataclass(frozen=True)
class Row:
    """A cache or adapter with its state in words."""

    form: FormView
    kind: Promise
    state: str
    is_bad: bool
    persona: str
    parents: Sequence[CubeView] = ()  # if the address asks for them
    may_erase: bool = False
    use: "UseForm | None" = None

    @property
    def composition(self) -> str:
        return _describe_choice(self.form.composition, self.form)

    @property
    def may_compose(self) -> bool:
        return self.form.kind == MemoryType.ACTIVATION

    @property
    def may_approve(self) -> bool:
        is_new = self.form.kind == MemoryType.PARAMETER and self.form.approved_at is None
        return is_new and not self.form.misses and not self.form.is_stale

    @property
    def rule(self) -> str:
        """Return in words which policies set the limits."""
        rules = POLICY.findall(self.form.examination.rule) if self.form.examination else []
        named = [_("policy %(name)s, version %(version)s") % {"name": name, "version": at} for name, at in rules]
        return "; ".join(named) or _("by default")

    @property
    def may_train_again(self) -> bool:
        is_own = self.form.kind == MemoryType.PARAMETER and not self.form.pack
        return is_own and bool(self.form.misses) and not self.form.is_stale

    @property
    def is_gentler(self) -> bool:
        return choose_recipe(self.form) is GENTLER

    @property
    def may_train(self) -> bool:
        return self.form.kind == MemoryType.ACTIVATION

    @property
    def may_mount(self) -> bool:
        is_ready = self.form.kind == MemoryType.ACTIVATION or self.form.approved_at is not None
        return is_ready and not self.form.is_stale and not self.form.misses


class ConversionForm(PageForm):
    """A cache or an adapter to make of a namespace's memories."""

    field_names = {"memory_ids": "namespace"}

    title = fields.CharField(label=gettext_lazy("Name"), max_length=LONGEST_TITLE)
    namespace = fields.CharField(
        label=gettext_lazy("Namespace"),
        max_length=LONGEST_PATH,
        help_text=gettext_lazy("Its memories, oldest first, become the block."),
        widget=fields.TextInput(attrs={"list": "places", "placeholder": "/team/handbook"}),
    )
    kind = fields.TypedChoiceField(
        label=gettext_lazy("Kind"),
        required=False,
        choices=list(KINDS.items()),
        coerce=MemoryType,
        empty_value=MemoryType.ACTIVATION,
    )
    persona = fields.UUIDField(label=gettext_lazy("Persona"), required=False, widget=fields.Select())

    def draft(self, actor: Actor) -> ConversionDraft:
        values = self.cleaned_data
        memory_ids = namespace_memories(actor=actor, path=values["namespace"])
        return ConversionDraft(memory_ids, values["title"], values["kind"], values["persona"])


class UseForm(PageForm):
    """The persona, the task and the composition of a cache or an adapter. needed: the field that the button changes."""

    persona = fields.UUIDField(label=gettext_lazy("Persona"), required=False, widget=fields.Select())
    task = fields.CharField(
        label=gettext_lazy("Task"),
        required=False,
        max_length=LONGEST_TASK,
        widget=fields.TextInput(attrs={"placeholder": gettext_lazy("Task")}),
    )
    composition = fields.TypedChoiceField(
        label=gettext_lazy("Behind another cache"),
        required=False,
        coerce=Composition,
        choices=list(COMPOSITIONS.items()),
    )

    def __init__(self, data: QueryDict | None = None, *, found: FormView, needed: str = "task") -> None:
        initial = {"task": found.task, "composition": found.composition}
        super().__init__(data, auto_id=f"%s-{found.id}", initial=initial)
        self.form_id, self.needed = found.id, needed
        self.fields["composition"].widget.choices = [(one, _describe_choice(one, found)) for one in Composition]
        self.fields[needed].required = needed != "task"

    def changes(self) -> FormChanges:
        changed = {"persona": "persona_id"}.get(self.needed, self.needed)
        return FormChanges(**{changed: self.cleaned_data[self.needed]})


@form_page
def forms(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """List caches and adapters. POST makes one of a namespace's memories, or tells its cost (`action` dry).

    `memories` in the address: the id of one whose memories are shown.
    """
    authorize(actor, Permission.MEMORY_READ)
    form = ConversionForm(values_of(request))
    if request.POST.get("action") == "dry":
        estimate = form.made_by(lambda: conversion_estimate(actor=actor, draft=form.draft(actor)))
        return _draw(request, actor, form, estimate)
    job = form.made_by(lambda: conversion_request(actor=actor, draft=form.draft(actor)))
    return see_other(reverse("job", args=[job.id])) if job else _draw(request, actor, form)


@post_page
def change(request: HttpRequest, actor: Actor, form_id: UUID) -> HttpResponseBase:
    """Mount, unmount, pin, compose, approve, make anew or erase a cache or adapter, or train an adapter of a cache's
    memories; `action` says which. Of an erasure, a question comes first."""
    action = request.POST.get("action", "")
    found = form_get(actor=actor, form_id=form_id)
    match action:
        case "approve":
            form_approve(actor=actor, form_id=form_id)
        case "mount" | "task" | "compose":
            use = UseForm(request.POST, found=found, needed=NEEDED[action])
            if not use.is_done_by(lambda: form_update(actor=actor, form_id=form_id, changes=use.changes())):
                return _draw(request, actor, ConversionForm(), refused=use)
        case "unmount":
            form_update(actor=actor, form_id=form_id, changes=FormChanges(persona_id=None))
        case "pin":
            form_update(actor=actor, form_id=form_id, changes=FormChanges(is_pinned=not found.is_pinned))
        case "anew" | "train":
            kind = found.kind if action == "anew" else MemoryType.PARAMETER
            persona_id = found.persona_id if kind == MemoryType.ACTIVATION else None
            former_id = found.id if action == "anew" else None
            recipe = choose_recipe(found) if kind == found.kind else {}
            draft = ConversionDraft(found.parents, found.title, kind, persona_id, former_id, recipe)
            return see_other(reverse("job", args=[conversion_request(actor=actor, draft=draft).id]))
        case "erase" if request.POST.get("confirmed") != "yes":
            return _draw_erasure(request, actor, found)
        case "erase":
            form_remove(actor=actor, form_id=form_id)
        case _:
            raise Invalid(errors=[FieldError("action", "no such action")])
    return see_other(reverse("forms"))


def choose_recipe(form: FormView) -> Mapping[str, float]:
    """Return the settings of the next training of an adapter: by the limits that its examination misses."""
    if not form.misses:
        return {}
    return MORE_ROUNDS if set(form.misses) <= LEARNED else GENTLER


def _draw_erasure(request: HttpRequest, actor: Actor, form: FormView) -> HttpResponseBase:
    authorize(actor, Permission.MEMORY_DELETE)
    is_adapter = form.kind == MemoryType.PARAMETER
    context = {"form": form, "is_adapter": is_adapter, "mounted": _describe_places(form, form.persona_name)}
    return draw(request, "vault/forms/erase.html", context)


def _draw(
    request: HttpRequest,
    actor: Actor,
    form: ConversionForm,
    estimate: Estimate | None = None,
    refused: UseForm | None = None,
) -> HttpResponseBase:
    personas = personas_list(actor=actor, pages=First(MOST_PERSONAS))
    names = {persona.id: persona.name for persona in personas}
    form.fields["persona"].widget.choices = [("", _("none yet")), *names.items()]
    asked = request.GET.get("memories")
    may_approve = is_allowed(actor, Permission.OPERATIONS_MANAGE)
    rows = [
        replace(
            _make_row(found, names, form_parents(actor=actor, form=found) if str(found.id) == asked else ()),
            may_erase=may_approve or found.owner_id in {None, actor.member_id},
            use=_offer_uses(found, names, refused),
        )
        for found in forms_list(actor=actor)
    ]
    context = {
        "rows": rows,
        "waiting": [(found, KINDS[found.form.kind]) for found in forms_waiting(actor=actor)],
        "saved_tokens": sum(row.form.saved_tokens for row in rows),
        "saved_seconds": sum(row.form.saved_seconds for row in rows),
        "places": paths_list(actor=actor),
        "estimate": estimate,
        "is_cache_chosen": estimate is not None and estimate.choice.form == Form.CACHE,
        "is_adapter": estimate is not None and estimate.choice.form == Form.ADAPTER,
        "form": form,
        "may_make": is_allowed(actor, Permission.MEMORY_CREATE),
        "may_approve": may_approve,
        "may_limit": is_allowed(actor, Permission.POLICY_MANAGE),
    }
    return draw(request, "vault/forms/forms.html", context, status=max(form.status, refused.status if refused else 0))


def _offer_uses(found: FormView, names: Mapping[UUID, str], refused: UseForm | None) -> UseForm:
    """Return the form of a cache or an adapter that offers the personas: the refused one, if that is its form."""
    use = refused if refused and refused.form_id == found.id else UseForm(found=found)
    use.fields["persona"].widget.choices = list(names.items())
    return use


def _make_row(form: FormView, names: dict[UUID, str], parents: Sequence[CubeView]) -> Row:
    persona = names.get(form.persona_id, "") if form.persona_id else ""
    state, is_bad = _describe(form, persona)
    return Row(form, KINDS[form.kind], state, is_bad, persona, parents)


def _describe(form: FormView, persona: str) -> tuple[str, bool]:
    """Return the state of a cache or adapter in words, and whether it is not used although it could be expected."""
    if form.is_stale:
        return _("Not used: one of its memories was changed. Make it anew."), True
    if form.misses:
        parts = ", ".join(_describe_miss(form, name) for name in form.misses)
        words = _("Not used: its examination misses the limits of %(parts)s.") % {"parts": parts}
        return f"{words} {_('Train it again, or erase it. Until then, answers use the text.')}", True
    if form.kind == MemoryType.PARAMETER and form.approved_at is None:
        return _("Waits for a person who approves it."), False
    return _describe_places(form, persona) or _("Not mounted on a persona or a task."), False


def _describe_places(form: FormView, persona: str) -> str:
    """Return in words on what a form is mounted, or nothing."""
    places = [_("Mounted on %(persona)s.") % {"persona": persona or _("a persona of another member")}]
    return " ".join([*(places if form.persona_id else []), *([_describe_task(form)] if form.task else [])])


def _describe_miss(form: FormView, name: str) -> str:
    """Return a limit in words, with what the examination reached and what is needed."""
    words, report = str(PARTS.get(name, name)), form.report or {}
    reached = report.get("perplexity_ratio" if name == "perplexity" else name)
    limit = getattr(form.examination.limits, name) if form.examination else None
    if reached is None or limit is None:
        return words
    if name == "perplexity":
        figures = {"part": words, "reached": f"{reached:.2f}", "limit": f"{limit:.2f}"}
        return _("%(part)s (× %(reached)s, at most × %(limit)s)") % figures
    figures = {"part": words, "reached": f"{100 * reached:.0f}", "limit": f"{100 * limit:.0f}"}
    return _("%(part)s (%(reached)s %%, at least %(limit)s %%)") % figures


def _describe_task(form: FormView) -> str:
    return _("Mounted on the task %(task)s.") % {"task": form.task}


def _describe_choice(choice: Composition, form: FormView) -> str:
    """Return a composition in words, with its figures as measured with the model of a cache."""
    words = str(COMPOSITIONS[choice])
    if choice is Composition.EXACT:
        return words
    figures = form.quality.get(choice)
    if figures is None:
        return _("%(composition)s (not measured)") % {"composition": words}
    shown = {"composition": words, "same": f"{100 * figures['same']:.0f}", "kl": f"{figures['kl']:.2f}"}
    return _("%(composition)s (%(same)s %% of answers equal, KL %(kl)s)") % shown
