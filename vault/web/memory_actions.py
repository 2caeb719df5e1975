"""One action on all matching memories, or an export: counted first, then done by a job with its own page."""

from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, ngettext

from governance.actor import Actor
from governance.errors import FieldError, Invalid
from governance.web.pages import draw, see_other
from vault.listing.actions import ActionDraft, action_count, action_create
from vault.listing.bulk import BulkAction
from vault.listing.queries import query_read
from vault.web.memory_forms import BulkForm, query_part

SKIPPED: dict[str, Promise] = {
    "version_conflict": gettext_lazy("stay: they changed since you read them"),
    "held": gettext_lazy("stay: a hold covers them"),
    "forbidden": gettext_lazy("stay: you lack the right"),
    "not_found": gettext_lazy("are not there any more"),
    "illegal_transition": gettext_lazy("stay: their state does not allow it"),
    "quota_exceeded": gettext_lazy("stay: a quota is used up"),
    "contract_export": gettext_lazy("stay: the contract of their pack keeps them here"),
    "quota_exhausted": gettext_lazy("stay: the contract of their pack allows no more reads"),
    **dict.fromkeys(
        ("contract_expired", "contract_revoked", "contract_ended"),
        gettext_lazy("stay: the contract of their pack is over"),
    ),
}


def skipped_words(code: str, title: str = "") -> str | Promise:
    return SKIPPED.get(code, title or code)


def done_words(action: BulkAction, count: int, left: int) -> str:
    """Return the sentence that tells what an action did. left: the memories that it left out."""
    words = {
        BulkAction.DELETE: ngettext("%(n)s memory deleted", "%(n)s memories deleted", count),
        BulkAction.RESTORE: ngettext("%(n)s memory restored", "%(n)s memories restored", count),
    }.get(action, ngettext("%(n)s memory changed", "%(n)s memories changed", count)) % {"n": count}
    return _add_left(words, left)


def undone_words(count: int, left: int) -> str:
    """Return the sentence that tells what was taken back. left: the memories that were changed again since."""
    return _add_left(ngettext("%(n)s memory changed back", "%(n)s memories changed back", count) % {"n": count}, left)


def _add_left(words: str, left: int) -> str:
    return words + gettext(", %(left)s left out") % {"left": left} if left else words


def act_as_job(
    request: HttpRequest, actor: Actor, draft: ActionDraft, form: BulkForm, shown: dict[str, Any]
) -> HttpResponseBase:
    """Start the job of an action, or show its counts and its form. shown: further context of the page of counts."""
    if not shown["new_path"]:
        job = form.made_by(lambda: action_create(actor=actor, draft=replace(draft, arguments=form.arguments())))
        if job is not None:
            return see_other(reverse("job", args=[job.id]))
    found = action_count(actor=actor, draft=draft)
    skipped = [(count, skipped_words(code)) for code, count in found.codes.items()]
    context = {**shown, "form": form, "count": found.count, "skipped": skipped, "is_capped": found.is_capped}
    status = HTTPStatus.UNPROCESSABLE_ENTITY if shown["new_path"] else form.status
    return draw(request, "vault/memories/bulk.html", context, status=status)


def draft_read(form: QueryDict, action: str, ids: list[UUID]) -> ActionDraft:
    """Return the draft for the chosen memories, or with `all` for everything that the list at `query` shows. Raises
    Invalid."""
    if form.get("all") != "yes":
        return ActionDraft(action, ids=tuple(ids))
    query = query_read(parse_qs(query_part(form.get("query", ""))))
    if query.text:
        raise Invalid(errors=[FieldError("query", "a search has no end: select its hits")])
    return ActionDraft(action, filters=query.filters_shown())
