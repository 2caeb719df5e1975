"""Operations on memories: fuse, split, undo of both, promote, copy and feedback. They work without JavaScript."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, Invalid, VersionConflict
from governance.versions import read_versions
from governance.web.page_forms import PageForm, values_of
from governance.web.pages import draw, form_page, post_page, see_other
from governance.web.undo import put_message
from vault.cubes.lookup import locate_readable
from vault.cubes.moves_and_rollbacks import cube_change_ask
from vault.cubes.services import cube_purge
from vault.lifecycle.fusion import cube_split, cubes_fuse, fusion_propose, fusion_undo, split_propose
from vault.lifecycle.services import cube_copy, cube_promote, cube_transition
from vault.listing.selectors import paths_list
from vault.namespaces.rules import LONGEST_PATH
from vault.reviews.feedback import Feedback, FeedbackResult, cube_feedback
from vault.vocabulary import FeedbackKind, FeedbackOutcome, Layer, State
from vault.web.labels import LAYERS
from vault.web.memory_forms import ContentField, chosen_read, read_expected_versions, unconfirmed_path

TITLES: dict[str, Promise] = {
    "fuse": gettext_lazy("Fuse memories"),
    "split": gettext_lazy("Split a memory"),
    "promote": gettext_lazy("Change the layer"),
    "copy": gettext_lazy("Copy a memory"),
    "feedback": gettext_lazy("Feedback"),
}
BUTTONS: dict[str, Promise] = {
    "fuse": gettext_lazy("Fuse"),
    "split": gettext_lazy("Split"),
    "promote": gettext_lazy("Change the layer"),
    "copy": gettext_lazy("Copy"),
    "feedback": gettext_lazy("Send"),
}
FEEDBACK_WORDS: dict[FeedbackOutcome, Promise] = {
    FeedbackOutcome.COUNTED: gettext_lazy("Counted as useful"),
    FeedbackOutcome.CHANGED: gettext_lazy("The memory has a new version"),
    FeedbackOutcome.REVIEW: gettext_lazy("Sent for review"),
}
SEPARATOR = "\n\n"
IDS = "operation-%s"
REFUSALS = (Invalid, Conflict)  # shown above the form


class FusionForm(PageForm):
    """The text of a fusion."""

    content = ContentField(label=gettext_lazy("Proposed text"), rows=10)
    reason = forms.CharField(label=gettext_lazy("Reason"), required=False, max_length=500)


class SplitForm(FusionForm):
    """The parts of a split."""

    field_names = {"parts": "content"}

    content = ContentField(label=gettext_lazy("Parts, an empty line between two"), rows=10, max_length=None)

    def parts(self) -> list[str]:
        return [part for text in self.cleaned_data["content"].split(SEPARATOR) if (part := text.strip())]


class LayerForm(PageForm):
    """The layer of a memory."""

    layer = forms.TypedChoiceField(
        label=gettext_lazy("Layer"),
        choices=lambda: [(layer, capfirst(str(words))) for layer, words in LAYERS.items()],
        coerce=Layer,
        widget=forms.Select(attrs={"autofocus": True}),
    )


class CopyForm(PageForm):
    """The namespace of a copy."""

    namespace = forms.CharField(
        label=gettext_lazy("Namespace"),
        max_length=LONGEST_PATH,
        widget=forms.TextInput(attrs={"list": "places", "placeholder": "/team/notes", "autofocus": True}),
    )


class FeedbackForm(PageForm):
    """Feedback of one of four buttons."""

    kind = forms.TypedChoiceField(
        choices=[(kind, kind) for kind in FeedbackKind], coerce=FeedbackKind, widget=forms.HiddenInput()
    )
    correction = ContentField(label=gettext_lazy("Right text"), rows=10)

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data, auto_id=IDS)
        self.fields["correction"].required = data.get("kind") == FeedbackKind.WRONG


@post_page
def fuse(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the proposed text of the chosen memories for editing; with `confirmed`, fuse them."""
    ids = list(chosen_read(request.POST))
    if request.POST.get("confirmed") != "yes":
        return _draw_proposed_fusion(request, actor, ids)
    form, shown = FusionForm(request.POST, auto_id=IDS), request.POST.get("version", "")
    try:
        made = form.made_by(
            lambda: cubes_fuse(
                actor=actor,
                cube_ids=ids,
                expected_versions=read_versions([shown]) if shown else None,
                **form.cleaned_data,
            )
        )
    except VersionConflict as changed:
        return _draw_proposed_fusion(request, actor, ids, changed)
    if made is None:
        return _draw_form(request, "fuse", form, {"ids": ids, "next": reverse("memories"), "version": shown})
    return _redirect_with_message(request, made.id, _("Fused"))


def _draw_proposed_fusion(
    request: HttpRequest, actor: Actor, ids: Sequence[UUID], changed: VersionConflict | None = None
) -> HttpResponseBase:
    """Draw the form with the proposed text. changed: the memories changed since the form was shown."""
    context: dict[str, Any] = {"ids": ids, "next": reverse("memories"), "fault": changed}
    text = ""
    try:
        found = fusion_propose(actor=actor, cube_ids=ids)
        text, context["version"] = found.content, found.versions
    except REFUSALS as fault:
        context["fault"] = fault
    return _draw_form(request, "fuse", FusionForm(auto_id=IDS, initial={"content": text}), context)


@form_page
def split(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """GET shows the proposed parts, separated by empty lines; POST splits the memory."""
    with acting(actor):
        version = cube_change_ask(actor=actor, cube_id=memory_id).version
    form, expected = SplitForm(values_of(request), auto_id=IDS), read_expected_versions(request.POST)
    made = form.made_by(
        lambda: cube_split(
            actor=actor,
            cube_id=memory_id,
            parts=form.parts(),
            reason=form.cleaned_data["reason"],
            expected_versions=expected,
        )
    )
    if made is not None:
        words = ngettext("Split into %(n)s memory", "Split into %(n)s memories", len(made)) % {"n": len(made)}
        return _redirect_with_message(request, memory_id, words)
    context: dict[str, Any] = {"next": reverse("memory", args=[memory_id])}
    context["version"] = request.POST.get("version", version)
    if not form.is_bound:
        try:
            form.initial = {"content": SEPARATOR.join(split_propose(actor=actor, cube_id=memory_id))}
        except REFUSALS as fault:
            context["fault"] = fault
    return _draw_form(request, "split", form, context)


@form_page
def promote(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    with acting(actor):
        cube = cube_change_ask(actor=actor, cube_id=memory_id)
    form, expected = LayerForm(values_of(request), auto_id=IDS), read_expected_versions(request.POST)
    form.initial = {"layer": cube.layer}
    if form.is_done_by(
        lambda: cube_promote(actor=actor, cube_id=memory_id, expected_versions=expected, **form.cleaned_data)
    ):
        return _redirect_with_message(request, memory_id, _("Layer changed"))
    context = {"next": reverse("memory", args=[memory_id]), "version": cube.version}
    return _draw_form(request, "promote", form, context)


@form_page
def copy(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    with acting(actor):
        version = locate_readable(actor, memory_id).version
        places = paths_list(actor=actor)
    form, expected = CopyForm(values_of(request), auto_id=IDS), read_expected_versions(request.POST)
    new_path = unconfirmed_path(actor, request.POST) if form.is_valid() else ""
    if not new_path:
        made = form.made_by(
            lambda: cube_copy(actor=actor, cube_id=memory_id, expected_versions=expected, **form.cleaned_data)
        )
        if made is not None:
            return _redirect_with_message(request, made.id, _("Copied"))
    context = {"places": places, "next": reverse("memory", args=[memory_id]), "version": version}
    return _draw_form(request, "copy", form, context | {"new_path": new_path})


@post_page
def recall(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """Recall an archived memory, so that every search finds it again."""
    cube_transition(
        actor=actor, cube_id=memory_id, to=State.ACTIVATED, expected_versions=read_expected_versions(request.POST)
    )
    return _redirect_with_message(request, memory_id, _("Recalled from the archive"))


@post_page
def erase(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """Erase a deleted memory for good, with what was made of it."""
    cube_purge(actor=actor, cube_id=memory_id, expected_versions=read_expected_versions(request.POST))
    put_message(request, _("Erased for good"))
    return see_other(f"{reverse('memories')}?inactive=true")


@post_page
def feedback(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """Store the feedback of one of four buttons; a refused correction is shown again for editing."""
    with acting(actor):
        locate_readable(actor, memory_id)
    form = FeedbackForm(request.POST)

    def store() -> FeedbackResult:
        given = Feedback(**form.cleaned_data)
        expected = None if given.kind is FeedbackKind.USEFUL else read_expected_versions(request.POST)
        return cube_feedback(actor=actor, cube_id=memory_id, feedback=given, expected_versions=expected)

    result = form.made_by(store)
    if result is not None:
        return _redirect_with_message(request, memory_id, str(FEEDBACK_WORDS[result.outcome]))
    corrects = request.POST.get("kind") == FeedbackKind.WRONG
    if not corrects:
        del form.fields["correction"]
    context = {"corrects": corrects, "version": request.POST.get("version", "")}
    return _draw_form(request, "feedback", form, context | {"next": reverse("memory", args=[memory_id])})


@post_page
def unfuse(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """Undo the fusion or split that a memory belongs to, then show one of the original memories."""
    plan = fusion_undo(actor=actor, cube_id=memory_id, expected_versions=read_expected_versions(request.POST))
    return _redirect_with_message(request, plan.parents[0].id, _("Undone: the memories have their earlier state again"))


def _draw_form(request: HttpRequest, operation: str, form: PageForm, context: dict[str, Any]) -> HttpResponseBase:
    """Draw the form of an operation. context: `fault` is an error without a form to correct."""
    shown = {"operation": operation, "title": TITLES[operation], "button": BUTTONS[operation], "form": form, **context}
    is_asked = context.get("fault") or context.get("new_path")
    status = HTTPStatus.UNPROCESSABLE_ENTITY if is_asked else form.status
    return draw(request, "vault/memories/operation.html", shown, status=status)


def _redirect_with_message(request: HttpRequest, memory_id: UUID, words: str) -> HttpResponseBase:
    put_message(request, words)
    return see_other(reverse("memory", args=[memory_id]))
