"""Operations on memories: fuse, split, undo of both, promote, copy and feedback. They work without JavaScript."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, DomainError, FieldError, IllegalTransition, Invalid, VersionConflict
from governance.versions import read_versions
from governance.web.pages import draw, form_page, post_page, see_other
from governance.web.undo import put_message
from vault.cubes.lookup import locate_readable
from vault.cubes.moves_and_rollbacks import cube_change_ask
from vault.cubes.services import cube_purge
from vault.lifecycle.fusion import cube_split, cubes_fuse, fusion_propose, fusion_undo, split_propose
from vault.lifecycle.services import cube_copy, cube_promote, cube_transition
from vault.listing.selectors import paths_list
from vault.namespaces.rules import PathError, check_path
from vault.reviews.feedback import Feedback, cube_feedback
from vault.vocabulary import FeedbackKind, FeedbackOutcome, Layer, State
from vault.web.labels import LAYERS
from vault.web.memory_forms import chosen_read, member_read, read_expected_versions, unconfirmed_path

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
REFUSALS = (Invalid, IllegalTransition, Conflict)  # shown above the form


@post_page
def fuse(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the proposed text of the chosen memories for editing; with `confirmed`, fuse them."""
    form = request.POST
    ids = list(chosen_read(form))
    if form.get("confirmed") != "yes":
        return _draw_proposed_fusion(request, actor, ids)
    text, shown = _normalise_line_breaks(form.get("content", "")), form.get("version", "")
    try:
        made = cubes_fuse(
            actor=actor,
            cube_ids=ids,
            content=text,
            reason=form.get("reason", "").strip(),
            expected_versions=read_versions([shown]) if shown else None,
        )
    except VersionConflict as fault:
        return _draw_proposed_fusion(request, actor, ids, fault)
    except REFUSALS as fault:
        return _draw_form(
            request, "fuse", {"ids": ids, "text": text, "version": shown, "next": reverse("memories")}, fault
        )
    return _redirect_with_message(request, made.id, _("Fused"))


def _draw_proposed_fusion(
    request: HttpRequest, actor: Actor, ids: Sequence[UUID], changed: VersionConflict | None = None
) -> HttpResponseBase:
    """Draw the form with the proposed text. changed: the memories changed since the form was shown."""
    after = reverse("memories")
    try:
        found = fusion_propose(actor=actor, cube_ids=ids)
    except REFUSALS as fault:
        return _draw_form(request, "fuse", {"ids": ids, "text": "", "next": after}, fault)
    context = {"ids": ids, "text": found.content, "version": found.versions, "next": after}
    return _draw_form(request, "fuse", context, changed)


@form_page
def split(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """GET shows the proposed parts, separated by empty lines; POST splits the memory."""
    after = reverse("memory", args=[memory_id])
    if request.method != "POST":
        try:
            parts = split_propose(actor=actor, cube_id=memory_id)
        except REFUSALS as fault:
            return _draw_form(request, "split", {"text": "", "next": after}, fault)
        return _draw_form(
            request,
            "split",
            {"text": SEPARATOR.join(parts), "next": after, "version": _current_version(actor, memory_id)},
        )
    text = _normalise_line_breaks(request.POST.get("content", ""))
    try:
        parts = [part.strip() for part in text.split(SEPARATOR) if part.strip()]
        reason = request.POST.get("reason", "").strip()
        made = cube_split(
            actor=actor,
            cube_id=memory_id,
            parts=parts,
            reason=reason,
            expected_versions=read_expected_versions(request.POST),
        )
    except REFUSALS as fault:
        context = {"text": text, "next": after, "version": request.POST.get("version", "")}
        return _draw_form(request, "split", context, fault)
    words = ngettext("Split into %(n)s memory", "Split into %(n)s memories", len(made)) % {"n": len(made)}
    return _redirect_with_message(request, memory_id, words)


@form_page
def promote(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    with acting(actor):
        cube = cube_change_ask(actor=actor, cube_id=memory_id)
    after = reverse("memory", args=[memory_id])
    context = {"layers": LAYERS, "layer": cube.layer, "next": after, "version": cube.version}
    if request.method != "POST":
        return _draw_form(request, "promote", context)
    try:
        layer = member_read(Layer, request.POST, "layer")
        cube_promote(
            actor=actor, cube_id=memory_id, layer=layer, expected_versions=read_expected_versions(request.POST)
        )
    except REFUSALS as fault:
        return _draw_form(request, "promote", context, fault)
    return _redirect_with_message(request, memory_id, _("Layer changed"))


@form_page
def copy(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    with acting(actor):
        version = locate_readable(actor, memory_id).version
        places = paths_list(actor=actor)
    after = reverse("memory", args=[memory_id])
    context: dict[str, Any] = {"places": places, "next": after, "version": version}
    if request.method != "POST":
        return _draw_form(request, "copy", context)
    context["namespace"] = request.POST.get("namespace", "").strip()
    try:
        path = _check_namespace(context["namespace"])
        if new_path := unconfirmed_path(actor, request.POST):
            return _draw_form(request, "copy", context | {"new_path": new_path})
        made = cube_copy(
            actor=actor, cube_id=memory_id, namespace=path, expected_versions=read_expected_versions(request.POST)
        )
    except REFUSALS as fault:
        return _draw_form(request, "copy", context, fault)
    return _redirect_with_message(request, made.id, _("Copied"))


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
    form = request.POST
    text = _normalise_line_breaks(form.get("correction", ""))
    try:
        kind = member_read(FeedbackKind, form, "kind")
        expected = None if kind is FeedbackKind.USEFUL else read_expected_versions(request.POST)
        given = Feedback(kind, text)
        result = cube_feedback(actor=actor, cube_id=memory_id, feedback=given, expected_versions=expected)
    except REFUSALS as fault:
        context = {
            "text": text,
            "corrects": form.get("kind") == FeedbackKind.WRONG,
            "version": form.get("version", ""),
            "next": reverse("memory", args=[memory_id]),
        }
        return _draw_form(request, "feedback", context, fault)
    return _redirect_with_message(request, memory_id, str(FEEDBACK_WORDS[result.outcome]))


@post_page
def unfuse(request: HttpRequest, actor: Actor, memory_id: UUID) -> HttpResponseBase:
    """Undo the fusion or split that a memory belongs to, then show one of the original memories."""
    plan = fusion_undo(actor=actor, cube_id=memory_id, expected_versions=read_expected_versions(request.POST))
    return _redirect_with_message(request, plan.parents[0].id, _("Undone: the memories have their earlier state again"))


def _draw_form(
    request: HttpRequest, operation: str, context: dict[str, Any], fault: DomainError | None = None
) -> HttpResponseBase:
    shown = {
        "operation": operation,
        "title": TITLES[operation],
        "button": BUTTONS[operation],
        "action": request.path,
        "longest": settings.MAX_CONTENT_CHARACTERS,
        "reason": request.POST.get("reason", ""),
        "fault": fault,
        **context,
    }
    is_asked = fault is not None or "new_path" in context
    status = HTTPStatus.UNPROCESSABLE_ENTITY if is_asked else HTTPStatus.OK
    return draw(request, "vault/memories/operation.html", shown, status=status)


def _redirect_with_message(request: HttpRequest, memory_id: UUID, words: str) -> HttpResponseBase:
    put_message(request, words)
    return see_other(reverse("memory", args=[memory_id]))


def _normalise_line_breaks(text: str) -> str:
    return text.replace("\r\n", "\n")


def _check_namespace(text: str) -> str:
    """Check the namespace. Raises Invalid."""
    try:
        return check_path(text)
    except PathError as fault:
        raise Invalid(errors=[FieldError("namespace", fault.message)]) from fault


def _current_version(actor: Actor, memory_id: UUID) -> int:
    with acting(actor):
        return locate_readable(actor, memory_id).version
