"""Namespaces: a tree with counts and owners; create, change, and move one with its subtree."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, NamespaceNotEmpty
from governance.pages import First
from governance.personas.selectors import personas_list
from governance.vocabulary import Action, Permission
from governance.web.access_words import ACTIONS
from governance.web.page_forms import PageForm, values_of
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
    from governance.models import Member
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


class NamespaceForm(PageForm):
    """The changeable properties of a namespace."""

    conflict_field = "path"

    kind = forms.TypedChoiceField(
        label=gettext_lazy("Kind"),
        required=False,
        choices=[(kind, KINDS[kind]) for kind in CHANGEABLE],
        coerce=NamespaceKind,
        empty_value=None,
    )
    owner = forms.UUIDField(label=gettext_lazy("Owner"), required=False, widget=forms.Select())
    quota = forms.IntegerField(
        label=gettext_lazy("Quota"),
        required=False,
        min_value=1,
        max_value=LARGEST_QUOTA,
        help_text=gettext_lazy("Largest number of memories. Empty: no limit."),
        widget=forms.TextInput(attrs={"inputmode": "numeric", "maxlength": 9}),
    )
    read_only = forms.BooleanField(
        label=gettext_lazy("Read-only: nobody adds or changes memories here"), required=False
    )

    def offer_owners(self, owners: Iterable["Member"], *, nobody: str = "") -> None:
        """Offer the members as owners; without one the field is left out. nobody: the words for none of them."""
        choices: list[tuple[object, str]] = [(owner.id, owner.display_name) for owner in owners]
        if not choices:
            del self.fields["owner"]
        else:
            self.fields["owner"].widget.choices = [*([("", nobody)] if nobody else []), *choices]

    def values(self) -> dict[str, Any]:
        """Return the values as those of a draft or of changes."""
        values = dict(self.cleaned_data)
        return values | {"owner_id": values.pop("owner")}

    def changes(self) -> NamespaceChanges:
        return NamespaceChanges(**self.values(), lifts_quota=self.cleaned_data["quota"] is None)


class NewNamespaceForm(NamespaceForm):
    """A namespace to create."""

    field_order = ("path", "kind")

    path = forms.CharField(
        label=gettext_lazy("Path"),
        max_length=LONGEST_PATH,
        widget=forms.TextInput(attrs={"placeholder": "/team/notes"}),
    )
    kind = forms.TypedChoiceField(
        label=gettext_lazy("Kind"),
        choices=[(kind, KINDS[kind]) for kind in MADE_HERE],
        coerce=NamespaceKind,
        initial=NamespaceKind.SHARED,
    )


class MoveForm(PageForm):
    """The path to which a namespace moves."""

    conflict_field = "path"

    path = forms.CharField(
        label=gettext_lazy("New path"),
        max_length=LONGEST_PATH,
        help_text=gettext_lazy(
            "The subtree moves too. Memories, grants and holds follow; keys and policies that name a path do not."
        ),
    )


class MountForm(PageForm):
    """The persona or the task for which a namespace is mounted."""

    persona = forms.UUIDField(label=gettext_lazy("Persona"), required=False, widget=forms.Select())
    task_id = forms.CharField(label=gettext_lazy("Task"), required=False, max_length=200)
    writable = forms.BooleanField(label=gettext_lazy("Writable from there"), required=False)


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
    form = NewNamespaceForm(request.POST)
    made = form.made_by(lambda: namespace_create(actor=actor, draft=NamespaceDraft(**form.values())))
    return see_other(reverse("namespace", args=[made.id])) if made else _draw_form(request, actor, form)


@safe_page
def namespace_new(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the form of a new namespace. `path`: its initial path."""
    authorize(actor, Permission.NAMESPACE_CREATE)
    return _draw_form(request, actor, NewNamespaceForm(initial=request.GET.dict()))


@form_page
def namespace(request: HttpRequest, actor: Actor, namespace_id: UUID) -> HttpResponseBase:
    """GET shows one namespace; POST changes it."""
    form = NamespaceForm(values_of(request))
    if form.is_done_by(lambda: namespace_update(actor=actor, namespace_id=namespace_id, changes=form.changes())):
        return see_other(reverse("namespace", args=[namespace_id]))
    return draw_namespace(request, actor, namespace_id, form=form)


@post_page
def namespace_move(request: HttpRequest, actor: Actor, namespace_id: UUID) -> HttpResponseBase:
    """Show the namespaces that would move; with `confirmed`, start the job."""
    form = MoveForm(request.POST)
    if "confirmed" in request.POST:
        job = form.made_by(lambda: namespace_move_later(actor=actor, namespace_id=namespace_id, **form.cleaned_data))
        if job is not None:
            return see_other(reverse("job", args=[job.id]))
        return draw_namespace(request, actor, namespace_id, move_form=form)
    plan = form.made_by(lambda: namespace_move_plan(actor=actor, namespace_id=namespace_id, **form.cleaned_data))
    return draw_namespace(request, actor, namespace_id, move_form=form, plan=plan.namespaces if plan else None)


@post_page
def namespace_remove(request: HttpRequest, actor: Actor, namespace_id: UUID) -> HttpResponseBase:
    """Ask for a confirmation if the namespace can be deleted; with `confirmed`, delete it."""
    is_confirmed = "confirmed" in request.POST
    try:
        namespace_delete(actor=actor, namespace_id=namespace_id, dry_run=not is_confirmed)
    except NamespaceNotEmpty as failure:
        return draw_namespace(request, actor, namespace_id, deletion=_describe_filled(failure))
    except Conflict:
        fault = _("A member's home, its chats and the namespace of a pack cannot be deleted.")
        return draw_namespace(request, actor, namespace_id, deletion=Deletion(fault))
    if is_confirmed:
        return see_other(reverse("namespaces"))
    return draw_namespace(request, actor, namespace_id, deletion=Deletion())


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


def _draw_form(request: HttpRequest, actor: Actor, form: NewNamespaceForm) -> HttpResponseBase:
    with acting(actor):
        may_choose = is_allowed(actor, Permission.GRANT_MANAGE)
        form.offer_owners(curators_list(actor=actor) if may_choose else [], nobody=_("Me"))
        home = _("Parts between slashes. What begins with %(home)s is yours alone.")
        form["path"].help_text = home % {"home": private_path_get(actor=actor)}
        context = {"form": form, "kinds": [(kind, KINDS[kind], MEANINGS[kind]) for kind in MADE_HERE]}
        return draw(request, "vault/namespaces/new.html", context, status=form.status)


def draw_namespace(
    request: HttpRequest,
    actor: Actor,
    namespace_id: UUID,
    *,
    form: NamespaceForm | None = None,
    move_form: MoveForm | None = None,
    mount_form: MountForm | None = None,
    plan: Sequence[tuple["Namespace", str]] | None = None,
    deletion: Deletion | None = None,
) -> HttpResponseBase:
    with acting(actor):
        detail = namespace_get(actor=actor, namespace_id=namespace_id)
        row, rights = NamespaceRow(detail.view), detail.view.rights
        kind = NamespaceKind(detail.view.namespace.kind)
        may_mount = is_allowed(actor, Permission.MEMORY_CREATE)
        may_govern = Action.GOVERN in rights
        form, move_form, mount_form = form or NamespaceForm(), move_form or MoveForm(), mount_form or MountForm()
        form.initial = vars(detail.view.namespace) | {"owner": detail.view.namespace.owner_id}
        move_form.initial = {"path": detail.view.namespace.path}
        if kind not in CHANGEABLE:
            del form.fields["kind"]
        nobody = "" if detail.view.namespace.owner_id else _("everybody")
        may_choose = may_govern and kind is not NamespaceKind.PRIVATE
        form.offer_owners(curators_list(actor=actor) if may_choose else [], nobody=nobody)
        personas = personas_list(actor=actor, pages=First(PERSONAS)) if may_mount else []
        names = [(persona.id, persona.name) for persona in personas]
        mount_form.fields["persona"].widget.choices = [("", _("None: for a task")), *names]
        if Action.WRITE not in rights:
            del mount_form.fields["writable"]
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
            "mounts": mounts_list(actor=actor, pages=First(MOUNTS), namespace_id=namespace_id),
            "mount_form": mount_form,
            "form": form,
            "move_form": move_form,
            "plan": [(namespace.path, after) for namespace, after in plan[:SHOWN]] if plan is not None else None,
            "moved": len(plan) if plan is not None else 0,
            "deletion": deletion,
        }
        is_refused = deletion and deletion.fault
        status = (
            HTTPStatus.UNPROCESSABLE_ENTITY if is_refused else max(form.status, move_form.status, mount_form.status)
        )
        return draw(request, "vault/namespaces/namespace.html", context, status=status)


def _list_states(detail: NamespaceDetail) -> list[tuple[str, str, int]]:
    """Return (state, label, count) of each state, in the order of the life cycle."""
    return [(state, str(STATES[state]), detail.states[state]) for state in State if detail.states.get(state)]
