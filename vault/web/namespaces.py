"""Namespaces: a tree with counts and owners; create, change, and move one with its subtree."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid, NamespaceNotEmpty
from governance.pages import First
from governance.personas.selectors import personas_list
from governance.text_values import read_uuid
from governance.vocabulary import Action, Permission
from governance.web.access_words import ACTIONS
from governance.web.pages import draw, form_page, post_page, safe_page, see_other
from vault.lifecycle.summaries import namespace_summary
from vault.namespaces.management import (
    CHANGEABLE,
    LARGEST_QUOTA,
    NamespaceChanges,
    NamespaceDraft,
    curators_list,
    namespace_create,
    namespace_delete,
    namespace_move_later,
    namespace_move_plan,
    namespace_update,
)
from vault.namespaces.mounts import mounts_list
from vault.namespaces.rules import LONGEST_PATH
from vault.namespaces.selectors import NamespaceDetail, NamespaceView, namespace_get, namespaces_list, private_path_get
from vault.vocabulary import NamespaceKind, State
from vault.web.labels import STATES

if TYPE_CHECKING:
    from vault.models import Namespace

NAMESPACES = 100  # of one page
MOUNTS, PERSONAS = 50, 100  # of one namespace
DEEPEST = 5  # maximal indentation of a row
SHOWN = 50  # namespaces that the preview of a move names
KINDS: dict[NamespaceKind, Promise] = {
    NamespaceKind.PRIVATE: gettext_lazy("private"),
    NamespaceKind.EXPERT: gettext_lazy("expert"),
    NamespaceKind.SHARED: gettext_lazy("shared"),
    NamespaceKind.CONTEXT_POOL: gettext_lazy("context pool"),
    NamespaceKind.PIPELINE_CACHE: gettext_lazy("pipeline cache"),
}
MEANINGS: dict[NamespaceKind, Promise] = {
    NamespaceKind.PRIVATE: gettext_lazy("Only its owner reads and writes here."),
    NamespaceKind.EXPERT: gettext_lazy("Its owner and grantees write here; others read."),
    NamespaceKind.SHARED: gettext_lazy("Every editor writes here, and every member reads."),
    NamespaceKind.CONTEXT_POOL: gettext_lazy("The agents of one session share it; it ends with the session."),
    NamespaceKind.PIPELINE_CACHE: gettext_lazy("Pipelines store results here under keys, for a limited time."),
}
FILLED_BY = {
    "memories": ngettext_lazy("%(n)s memory", "%(n)s memories", "n"),
    "restorable": ngettext_lazy(
        "%(n)s deleted or expired memory that is not purged yet",
        "%(n)s deleted or expired memories that are not purged yet",
        "n",
    ),
    "namespaces": ngettext_lazy("%(n)s namespace below", "%(n)s namespaces below", "n"),
}
MADE_HERE = (NamespaceKind.SHARED, NamespaceKind.EXPERT, NamespaceKind.PRIVATE)


@dataclass(frozen=True)
class NamespaceRow:
    """A namespace as a row of the tree."""

    view: NamespaceView

    @property
    def name(self) -> str:
        return self.view.namespace.path.rpartition("/")[2]

    @property
    def above(self) -> str:
        """The path without the last part."""
        return self.view.namespace.path.removesuffix(self.name)

    @property
    def depth(self) -> int:
        return min(self.view.depth, DEEPEST)

    @property
    def kind(self) -> str:
        return str(KINDS[NamespaceKind(self.view.namespace.kind)])


@dataclass(frozen=True)
class Deletion:
    """A deletion that waits for its confirmation. fault: the reason why it is refused."""

    fault: str = ""


class PathPages:
    """A page of rows ordered by path, after the path `after`."""

    def __init__(self, after: str) -> None:
        self._after = after
        self.next = ""

    def take(self, rows: QuerySet[Any]) -> Sequence[Any]:
        found = list((rows.filter(path__gt=self._after) if self._after else rows)[: NAMESPACES + 1])
        if len(found) > NAMESPACES:
            self.next = found[NAMESPACES - 1].path
        return found[:NAMESPACES]


@form_page
def namespaces(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET shows the tree; POST creates a namespace."""
    if request.method != "POST":
        return _draw_list(request, actor)
    authorize(actor, Permission.NAMESPACE_CREATE)
    try:
        made = namespace_create(actor=actor, draft=_read_draft(request.POST))
    except (Invalid, Conflict) as failure:
        return _draw_form(request, actor, request.POST, fault=_describe_fault(failure))
    return see_other(reverse("namespace", args=[made.id]))


@safe_page
def namespace_new(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the form of a new namespace. `path`: its initial path."""
    authorize(actor, Permission.NAMESPACE_CREATE)
    return _draw_form(request, actor, request.GET)


@form_page
def namespace(request: HttpRequest, actor: Actor, namespace_id: UUID) -> HttpResponseBase:
    """GET shows one namespace; POST changes it."""
    if request.method != "POST":
        return _draw_namespace(request, actor, namespace_id)
    try:
        namespace_update(actor=actor, namespace_id=namespace_id, changes=_read_changes(request.POST))
    except Invalid as failure:
        return _draw_namespace(request, actor, namespace_id, fault=_describe_fault(failure), given=request.POST)
    return see_other(reverse("namespace", args=[namespace_id]))


@post_page
def namespace_move(request: HttpRequest, actor: Actor, namespace_id: UUID) -> HttpResponseBase:
    """Show the namespaces that would move; with `confirmed`, start the job."""
    path = request.POST.get("path", "").strip()
    try:
        if "confirmed" in request.POST:
            job = namespace_move_later(actor=actor, namespace_id=namespace_id, path=path)
            return see_other(reverse("job", args=[job.id]))
        plan = namespace_move_plan(actor=actor, namespace_id=namespace_id, path=path).namespaces
    except (Invalid, Conflict) as failure:
        return _draw_namespace(request, actor, namespace_id, move_fault=_describe_fault(failure), destination=path)
    return _draw_namespace(request, actor, namespace_id, plan=plan, destination=path)


@post_page
def namespace_remove(request: HttpRequest, actor: Actor, namespace_id: UUID) -> HttpResponseBase:
    """Ask for a confirmation if the namespace can be deleted; with `confirmed`, delete it."""
    is_confirmed = "confirmed" in request.POST
    try:
        namespace_delete(actor=actor, namespace_id=namespace_id, dry_run=not is_confirmed)
    except NamespaceNotEmpty as failure:
        return _draw_namespace(request, actor, namespace_id, deletion=_describe_filled(failure))
    except Conflict:
        fault = _("A member's home, its chats and the namespace of a pack cannot be deleted.")
        return _draw_namespace(request, actor, namespace_id, deletion=Deletion(fault))
    if is_confirmed:
        return see_other(reverse("namespaces"))
    return _draw_namespace(request, actor, namespace_id, deletion=Deletion())


def _describe_filled(failure: NamespaceNotEmpty) -> Deletion:
    """Return the refusal with the counts of what is in a namespace."""
    counts = {error.field: int(error.message) for error in failure.errors}
    parts = [words % {"n": counts[name]} for name, words in FILLED_BY.items() if name in counts]
    return Deletion(_("The namespace is not empty: %(parts)s.") % {"parts": ", ".join(parts)})


def _draw_list(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    pages = PathPages(request.GET.get("after", ""))
    with acting(actor):
        rows = [NamespaceRow(view) for view in namespaces_list(actor=actor, pages=pages)]
        may_make = is_allowed(actor, Permission.NAMESPACE_CREATE)
        context = {"rows": rows, "next": pages.next, "may_make": may_make}
        return draw(request, "vault/namespaces/list.html", context)


def _draw_form(request: HttpRequest, actor: Actor, given: QueryDict, *, fault: str = "") -> HttpResponseBase:
    with acting(actor):
        context = {
            "given": given,
            "fault": fault,
            "kinds": [(kind, KINDS[kind], MEANINGS[kind]) for kind in MADE_HERE],
            "chosen": given.get("kind", NamespaceKind.SHARED),
            "home": private_path_get(actor=actor),
            "owners": curators_list(actor=actor) if is_allowed(actor, Permission.GRANT_MANAGE) else [],
            "longest": LONGEST_PATH,
            "largest": LARGEST_QUOTA,
        }
        status = HTTPStatus.UNPROCESSABLE_ENTITY if fault else HTTPStatus.OK
        return draw(request, "vault/namespaces/new.html", context, status=status)


def _draw_namespace(
    request: HttpRequest,
    actor: Actor,
    namespace_id: UUID,
    *,
    fault: str = "",
    given: QueryDict | None = None,
    move_fault: str = "",
    plan: Sequence[tuple["Namespace", str]] | None = None,
    destination: str = "",
    deletion: Deletion | None = None,
) -> HttpResponseBase:
    with acting(actor):
        detail = namespace_get(actor=actor, namespace_id=namespace_id)
        row, rights = NamespaceRow(detail.view), detail.view.rights
        kind = NamespaceKind(detail.view.namespace.kind)
        may_mount = is_allowed(actor, Permission.MEMORY_CREATE)
        may_govern = Action.GOVERN in rights
        context = {
            "detail": detail,
            "row": row,
            "namespace": detail.view.namespace,
            "meaning": MEANINGS[kind],
            "summary": namespace_summary(actor=actor, namespace_id=namespace_id),
            "states": _list_states(detail),
            "rights": [ACTIONS[right] for right in rights],
            "may_share": Action.SHARE in rights,
            "may_govern": may_govern,
            "may_mount": may_mount,
            "may_write": Action.WRITE in rights,
            "mounts": mounts_list(actor=actor, pages=First(MOUNTS), namespace_id=namespace_id),
            "personas": personas_list(actor=actor, pages=First(PERSONAS)) if may_mount else [],
            "kinds": [(kind_choice, KINDS[kind_choice]) for kind_choice in CHANGEABLE] if kind in CHANGEABLE else [],
            "owners": curators_list(actor=actor) if may_govern and kind is not NamespaceKind.PRIVATE else [],
            "largest": LARGEST_QUOTA,
            "longest": LONGEST_PATH,
            "given": given,
            "fault": fault,
            "move_fault": move_fault,
            "plan": [(namespace.path, after) for namespace, after in plan[:SHOWN]] if plan is not None else None,
            "moved": len(plan) if plan is not None else 0,
            "deletion": deletion,
            "destination": destination or detail.view.namespace.path,
        }
        is_refused = fault or move_fault or (deletion and deletion.fault)
        status = HTTPStatus.UNPROCESSABLE_ENTITY if is_refused else HTTPStatus.OK
        return draw(request, "vault/namespaces/namespace.html", context, status=status)


def _list_states(detail: NamespaceDetail) -> list[tuple[str, str, int]]:
    """Return (state, label, count) of each state, in the order of the life cycle."""
    return [(state, str(STATES[state]), detail.states[state]) for state in State if detail.states.get(state)]


def _read_draft(form: QueryDict) -> NamespaceDraft:
    """Read the draft. Raises Invalid."""
    kind = form.get("kind", "")
    if kind not in set(NamespaceKind):
        raise Invalid(errors=[FieldError("kind", _("choose one"))])
    return NamespaceDraft(
        path=form.get("path", "").strip(),
        kind=NamespaceKind(kind),
        owner_id=_read_uuid(form.get("owner", "")),
        read_only="read_only" in form,
        quota=_read_quota(form),
    )


def _read_changes(form: QueryDict) -> NamespaceChanges:
    kind, quota = form.get("kind", ""), _read_quota(form)
    return NamespaceChanges(
        kind=NamespaceKind(kind) if kind in set(NamespaceKind) else None,
        owner_id=_read_uuid(form.get("owner", "")),
        read_only="read_only" in form,
        quota=quota,
        lifts_quota=quota is None,
    )


def _read_quota(form: QueryDict) -> int | None:
    text = form.get("quota", "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Invalid(errors=[FieldError("quota", _("write a whole number"))])
    return int(text)


def _read_uuid(text: str) -> UUID | None:
    return read_uuid(text, "owner", _("choose one")) if text else None


def _describe_fault(failure: Invalid | Conflict) -> str:
    if isinstance(failure, Conflict):
        return _("There is a namespace at this path already. Choose another path.")
    return "; ".join(error.message for error in failure.errors) or failure.detail
