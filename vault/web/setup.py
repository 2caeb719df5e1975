"""The first steps of a new organisation: ways to begin, and a checklist that follows what was done."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from governance.access.decisions.services import authorize
from governance.accounts.factors import factor_get
from governance.accounts.own_details import hides_setup, setup_hide
from governance.accounts.rules import SignedIn
from governance.actor import Actor
from governance.apikeys.selectors import apikeys_list
from governance.database import acting
from governance.members.selectors import members_list
from governance.pages import First
from governance.vocabulary import Permission
from governance.web.pages import draw, post_page, safe_page, see_other
from governance.web.sessions import web_person
from vault.endpoints.services import model_names
from vault.listing.queries import MemoryQuery
from vault.listing.selectors import memories_page

ADD, SET_UP = gettext_lazy("Add"), gettext_lazy("Set up")
CONNECT, INVITE = gettext_lazy("Connect"), gettext_lazy("Invite")
LOOKED_AT = 20  # members and keys


@dataclass(frozen=True)
class Step:
    """A step of the checklist. address: of the page that takes it; button: the words on the way there."""

    title: str | Promise
    note: str
    is_done: bool
    button: str | Promise
    address: str


@safe_page
def setup(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the checklist, a part of the overview; nothing once all is done or the reader put it away."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    person = web_person(request)
    steps = [] if hides_setup(person=person) else _list_steps(person, actor)
    done = sum(step.is_done for step in steps)
    context = {"steps": steps if done < len(steps) else [], "done": done, "of": len(steps)}
    return draw(request, "vault/overview/_setup.html", context)


@post_page
def hide(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    authorize(actor, Permission.OPERATIONS_MANAGE)
    setup_hide(person=web_person(request))
    return see_other(reverse("overview"))


def _list_steps(person: SignedIn, actor: Actor) -> list[Step]:
    with acting(actor):
        members = members_list(actor=actor, pages=First(LOOKED_AT))
        used = [key for key in apikeys_list(actor=actor, pages=First(LOOKED_AT)) if key.last_used_at]
        models = model_names(actor)
        has_memory = bool(memories_page(actor=actor, query=MemoryQuery(), size=1).views)
    has_factor = factor_get(person=person).active
    others = len(members) - 1
    quoting = _("None. Rules and dictionaries read your text, and answers quote your memories.")
    return [
        _step(_("First memory"), _("Stored") if has_memory else _("None yet"), has_memory, "memory_add", ADD),
        _step(_("Second factor"), _("On") if has_factor else _("Off"), has_factor, "second_factor", SET_UP),
        _step(_("Language model"), ", ".join(models) or quoting, bool(models), "model_settings", CONNECT),
        _step(
            _("Members"),
            ngettext("%(n)s beside you", "%(n)s beside you", others) % {"n": others} if others else _("Only you"),
            others > 0,
            "members",
            INVITE,
        ),
        _step(
            _("Agent"),
            _("%(name)s has called") % {"name": used[0].name or used[0].prefix} if used else _("None has called yet"),
            bool(used),
            "integrations",
            CONNECT,
        ),
    ]


def _step(title: str, note: str, is_done: bool, page_name: str, button: Promise) -> Step:
    return Step(title, note, is_done, button, reverse(page_name))
