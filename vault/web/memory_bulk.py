"""One action on the selected memories: a preview with counts, then the action, then Undo."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.denials import record_and_return_denial
from governance.errors import FieldError, Invalid, VersionConflict
from governance.vocabulary import Permission
from governance.web.pages import draw, post_page, see_other
from governance.web.return_page import is_here
from governance.web.undo import put_message
from vault.listing.actions import EXPORT
from vault.listing.bulk import (
    VERSIONED,
    BulkAction,
    BulkArguments,
    BulkOutcome,
    Chosen,
    bulk_apply,
    bulk_rehearse,
)
from vault.listing.selectors import deleted_ids, memories_choose, paths_list
from vault.listing.undo import bulk_undo
from vault.web.memory_actions import act_as_job, done_words, draft_read, skipped_words, undone_words
from vault.web.memory_forms import BulkForm, chosen_read, chosen_text, unconfirmed_path

TITLES: dict[str, Promise] = {
    BulkAction.TAG: gettext_lazy("Tag memories"),
    BulkAction.MOVE: gettext_lazy("Move memories"),
    BulkAction.EXPIRE: gettext_lazy("Set the expiry of memories"),
    BulkAction.FREEZE: gettext_lazy("Freeze memories"),
    BulkAction.UNFREEZE: gettext_lazy("Unfreeze memories"),
    BulkAction.DELETE: gettext_lazy("Delete memories"),
    BulkAction.RESTORE: gettext_lazy("Restore memories"),
    EXPORT: gettext_lazy("Export memories"),
    BulkAction.ARCHIVE: gettext_lazy("Archive memories"),
    BulkAction.ACTIVATE: gettext_lazy("Activate memories"),
    BulkAction.COOL: gettext_lazy("Store memories cold"),
    BulkAction.WARM: gettext_lazy("Make memories hot"),
    BulkAction.PROMOTE: gettext_lazy("Change the layer of memories"),
    BulkAction.COPY: gettext_lazy("Copy memories"),
    BulkAction.SPLIT: gettext_lazy("Split memories"),
}
BUTTONS: dict[str, Promise] = {
    BulkAction.TAG: gettext_lazy("Tag"),
    BulkAction.MOVE: gettext_lazy("Move"),
    BulkAction.EXPIRE: gettext_lazy("Set expiry"),
    BulkAction.FREEZE: gettext_lazy("Freeze"),
    BulkAction.UNFREEZE: gettext_lazy("Unfreeze"),
    BulkAction.DELETE: gettext_lazy("Delete"),
    BulkAction.RESTORE: gettext_lazy("Restore"),
    EXPORT: gettext_lazy("Export"),
    BulkAction.ARCHIVE: gettext_lazy("Archive"),
    BulkAction.ACTIVATE: gettext_lazy("Activate"),
    BulkAction.COOL: gettext_lazy("Store cold"),
    BulkAction.WARM: gettext_lazy("Make hot"),
    BulkAction.PROMOTE: gettext_lazy("Change the layer"),
    BulkAction.COPY: gettext_lazy("Copy"),
    BulkAction.SPLIT: gettext_lazy("Split"),
}
UNDO = {
    BulkAction.DELETE: BulkAction.RESTORE,
    BulkAction.RESTORE: BulkAction.DELETE,
    BulkAction.FREEZE: BulkAction.UNFREEZE,
    BulkAction.UNFREEZE: BulkAction.FREEZE,
    BulkAction.ARCHIVE: BulkAction.ACTIVATE,
    BulkAction.COOL: BulkAction.WARM,
    BulkAction.WARM: BulkAction.COOL,
    **{action: action for action in VERSIONED},  # by the versions that they made
}
AS_JOB = frozenset({EXPORT, BulkAction.PROMOTE, BulkAction.COPY, BulkAction.SPLIT})  # undone on the page of the job
MOVING = frozenset({BulkAction.MOVE, BulkAction.COPY})  # to a namespace that the form names
NAMED = 5  # up to so many memories are named, more are only counted
SHORTLY = timedelta(minutes=5)  # of the rehearsal: within every retention
CLOCKS_DIFFER = timedelta(seconds=5)  # of this machine and the database
# Placeholder arguments: the rehearsal only checks permissions and holds. Real arguments are checked later.
REHEARSED = BulkArguments(tags=("-",), namespace="", expires_at=None, reason="-")


@post_page
def memories_bulk(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the counts of a bulk action; with `confirmed`, perform the action."""
    asked = request.POST
    if asked.get("action", "") not in TITLES:
        raise Invalid(errors=[FieldError("action", "choose one")])
    chosen = chosen_read(asked)
    form = BulkForm(asked if asked.get("confirmed") == "yes" else None, action=asked["action"])
    new_path = unconfirmed_path(actor, asked) if form.is_valid() and asked["action"] in MOVING else ""
    if asked.get("all") == "yes" or (asked["action"] in AS_JOB and chosen):
        return _draw_job_count(request, actor, list(chosen), form, new_path)
    if not chosen or asked["action"] in AS_JOB:
        return see_other(_next_address(asked, request))
    action = BulkAction(asked["action"])
    if new_path or not form.is_valid():
        return _draw_question(request, actor, action, chosen, form, new_path)
    since = timezone.now() - CLOCKS_DIFFER
    has_undo = action is not BulkAction.RESTORE or deleted_ids(actor, chosen) == chosen.keys()
    outcome = form.made_by(lambda: bulk_apply(actor=actor, action=action, chosen=chosen, arguments=form.arguments()))
    if outcome is None:
        return _draw_question(request, actor, action, chosen, form)
    _refuse_stale(chosen, outcome)
    for denial in outcome.denials:
        record_and_return_denial(actor=actor, denial=denial, path=request.path)
    _put_undo(request, action, outcome, since, has_undo=has_undo)
    return see_other(_next_address(asked, request))


@post_page
def memories_bulk_undo(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Take back a tag, a move or an expiry of the memories that still have it."""
    action = request.POST.get("action", "")
    if action not in VERSIONED:
        raise Invalid(errors=[FieldError("action", "choose one")])
    outcome = bulk_undo(actor=actor, action=BulkAction(action), chosen=chosen_read(request.POST))
    words = undone_words(len(outcome.done), len(outcome.skipped))
    put_message(request, words)
    return see_other(_next_address(request.POST, request))


def _draw_job_count(
    request: HttpRequest, actor: Actor, ids: list[UUID], form: BulkForm, new_path: str
) -> HttpResponseBase:
    asked = request.POST
    draft = draft_read(asked, asked["action"], ids)
    shown = {
        **_action_words(asked["action"]),
        "next": _next_address(asked, request),
        "query": asked.get("query", ""),
        "ids": draft.ids,
        "is_all": draft.filters is not None,
        "places": _list_places(actor, asked["action"]),
        "new_path": new_path,
    }
    return act_as_job(request, actor, draft, form, shown)


def _list_places(actor: Actor, action: str) -> list[str]:
    """Return the paths that a form offers as the target of a move or copy."""
    return paths_list(actor=actor) if action in MOVING and is_allowed(actor, Permission.MEMORY_READ) else []


def _action_words(action: str) -> dict[str, Any]:
    return {"action": action, "title": TITLES[action], "button": BUTTONS[action]}


def _draw_question(
    request: HttpRequest,
    actor: Actor,
    action: BulkAction,
    chosen: Chosen,
    form: BulkForm,
    new_path: str = "",
) -> HttpResponseBase:
    rehearsed = BulkAction.TAG if action in {BulkAction.MOVE, BulkAction.EXPIRE} else action
    arguments = replace(REHEARSED, expires_at=timezone.now() + SHORTLY) if action is BulkAction.RESTORE else REHEARSED
    outcome = bulk_rehearse(actor=actor, action=rehearsed, chosen=chosen, arguments=arguments)
    _refuse_stale(chosen, outcome)
    context = {
        **_action_words(action),
        "ids": [chosen_text(cube_id, version) for cube_id, version in chosen.items()],
        "count": len(outcome.done),
        "named": _list_titles(actor, action, list(outcome.done)),
        "skipped": _count_reasons(outcome),
        "next": _next_address(request.POST, request),
        "form": form,
        "new_path": new_path,
        "places": _list_places(actor, action),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if new_path else form.status
    return draw(request, "vault/memories/bulk.html", context, status=status)


def _refuse_stale(chosen: Chosen, outcome: BulkOutcome) -> None:
    """Raise VersionConflict if only one memory was chosen and it has changed; of several, changed ones are skipped."""
    if len(chosen) == 1:
        for _, failure in outcome.skipped:
            if isinstance(failure, VersionConflict):
                raise failure


def _list_titles(actor: Actor, action: BulkAction, ids: Sequence[UUID]) -> list[str]:
    """Return the titles of a few memories, or the beginnings of their texts."""
    if len(ids) > NAMED or not is_allowed(actor, Permission.MEMORY_READ):
        return []
    inactive = action is BulkAction.RESTORE
    if inactive and not is_allowed(actor, Permission.MEMORY_DELETE):
        return []
    views = memories_choose(actor=actor, ids=ids, inactive=inactive)
    return [view.words.title or view.words.content for view in views]


def _count_reasons(outcome: BulkOutcome) -> list[tuple[int, str | Promise]]:
    counted = Counter(failure.code for _, failure in outcome.skipped)
    titles = {failure.code: failure.title for _, failure in outcome.skipped}
    return [(count, skipped_words(code, titles[code])) for code, count in counted.most_common()]


def _put_undo(
    request: HttpRequest, action: BulkAction, outcome: BulkOutcome, since: datetime, *, has_undo: bool
) -> None:
    """Put the message for the next page, with an Undo button if the action `has_undo`."""
    undo = UNDO.get(action) if outcome.done and has_undo else None
    address = reverse("memories_bulk_undo" if action in VERSIONED else "memories_bulk")
    put_message(
        request,
        done_words(action, len(outcome.done), len(outcome.skipped)),
        address=address if undo else "",
        action=str(undo or ""),
        ids=[chosen_text(cube_id, version) for cube_id, version in outcome.done.items()] if undo else [],
        after=_next_address(request.POST, request),
        since=since.isoformat() if action is BulkAction.UNFREEZE else "",
    )


def _next_address(form: QueryDict, request: HttpRequest) -> str:
    """Return the page that the form came from, unless it is the page of a deleted memory."""
    wanted = form.get("next", "")
    deleted = chosen_read(form) if form.get("action") == BulkAction.DELETE else {}
    is_deleted = any(str(cube_id) in wanted for cube_id in deleted)
    return wanted if is_here(request, wanted) and not is_deleted else reverse("memories")
