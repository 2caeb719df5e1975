"""Sign-in, step by step, and sign-out: a first factor, a second if the person has one, and an organisation."""

from http import HTTPStatus

from django import forms
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from governance.accounts.browser_sessions import session_begin, session_end
from governance.accounts.factors import second_factor_is_due
from governance.accounts.identities import provider_of
from governance.accounts.passwords import password_sign_in
from governance.accounts.rules import FirstFactor, SignedIn, Way
from governance.accounts.selectors import Organisation, member_user, organisations_of
from governance.actor import Actor
from governance.database import acting
from governance.errors import Forbidden, NotFound, TooManyAttempts, Unauthenticated
from governance.personas.selectors import persona_show
from governance.policies.purposes import list_purposes
from governance.tenants.selectors import sign_in_link_works, tenant_id_by_slug
from governance.tenants.services import sign_in_link_use
from governance.web.account_forms import CodeForm, SignInForm
from governance.web.page_forms import PageForm, values_of
from governance.web.pages import answer_errors, draw, form_page, person_page, post_page, safe_page, see_other
from governance.web.pagination import uuid_or_none
from governance.web.return_page import is_here, next_forget, next_keep, next_page
from governance.web.roles import first_page, rights_by_grants, rights_of, role_label
from governance.web.sessions import (
    PERSONA,
    PURPOSE,
    actor_of_session,
    client_address,
    client_agent,
    client_zone,
    first_factor_keep,
    first_factor_pending,
    request_id,
    sign_in,
    web_context,
)
from governance.web.trusted_browser import browser_trust, find_trusted_browser


class PurposeForm(PageForm):
    """The purpose of a browser."""

    purpose = forms.CharField(
        label=_("Purpose"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"list": "purposes-known", "autofocus": True}),
    )

    def clean_purpose(self) -> str:
        purpose = str(self.cleaned_data["purpose"])
        if not purpose.isprintable():
            raise forms.ValidationError(_("Use visible characters only."))
        return purpose


@require_http_methods(["GET", "HEAD"])
@answer_errors
def home(request: HttpRequest) -> HttpResponseBase:
    """Redirect the bare address to the first page, or to sign-in."""
    actor = _actor(request)
    return see_other(first_page(actor) if actor else reverse("sign_in"))


@safe_page
def you(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Show the signed-in person and the rights of their role: the first page if the product has no other."""
    with acting(actor):
        context = {
            "role": role_label(actor.role),
            "rights": rights_of(actor.role),
            "granted": rights_by_grants(actor),
        }
    return draw(request, "governance/you.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@answer_errors
def sign_in_page(request: HttpRequest, slug: str = "") -> HttpResponseBase:
    """Show the sign-in page: password, mailed link, and, at an organisation's address, its own button."""
    form = SignInForm(values_of(request))
    if request.method != "POST":
        if actor := _actor(request):
            return see_other(first_page(actor))
        response = _draw_sign_in(request, slug, form)
        next_keep(request, response)
        return response
    if not form.is_valid():
        return _draw_sign_in(request, slug, form)
    try:
        first = password_sign_in(
            **form.cleaned_data,
            request_id=request_id(request),
            address=client_address(request),
            trusted=find_trusted_browser(request),
        )
    except Unauthenticated:
        form.add_error(None, _("The address or the password is wrong."))
        return _draw_sign_in(request, slug, form)
    except TooManyAttempts as failure:
        words = _("Too many attempts. Wait %(wait)s seconds, then try again.") % {"wait": failure.retry_after}
        form.add_error(None, words)
        waiting = _draw_sign_in(request, slug, form, status=HTTPStatus.TOO_MANY_REQUESTS)
        waiting["Retry-After"] = str(failure.retry_after)
        return waiting
    return proceed(request, first)


@require_http_methods(["GET", "HEAD", "POST"])
@answer_errors
def sign_in_link(request: HttpRequest, token: str) -> HttpResponseBase:
    """Show the page of a sign-in link; only its button uses the link up, since mail scanners open addresses too.

    The same address with the name of an organisation redirects to that organisation's sign-in page.
    """
    if tenant_id_by_slug(token) is not None:
        return sign_in_page(request, slug=token)
    if request.method == "POST":
        response = _use_link(request, token)
    elif sign_in_link_works(token=token):
        response = draw(request, "governance/sign_in_link.html")
    else:
        response = _draw_spent_link(request)
    # The address contains a secret, so it is not sent. `no-referrer` would make browsers send `Origin: null`, which
    # CSRF refuses.
    response["Referrer-Policy"] = "strict-origin"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@answer_errors
def sign_in_code(request: HttpRequest) -> HttpResponseBase:
    """Ask for the second factor after the first."""
    first, _strong = first_factor_pending(request)
    form = CodeForm(values_of(request))
    if not form.is_done_by(lambda: form.pass_second_factor(request, first)):
        return draw(request, "governance/sign_in_code.html", {"form": form}, status=form.status)
    return choose(request, first, strong=True)


@require_http_methods(["GET", "HEAD", "POST"])
@answer_errors
def sign_in_organisation(request: HttpRequest) -> HttpResponseBase:
    """Choose the organisation to enter, for a member of several."""
    first, strong = first_factor_pending(request)
    if not strong and second_factor_is_due(first):
        raise Unauthenticated
    places = organisations_of(first.user_id, bound_to=first.bound_to)
    wanted = request.POST.get("organisation", "")
    place = next((organisation for organisation in places if str(organisation.member_id) == wanted), None)
    if place is None:
        return draw(request, "governance/sign_in_organisation.html", {"places": places})
    return enter(request, first, place, strong=strong)


@require_POST
@person_page
def sign_out(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    session_end(person=person)
    request.session.flush()
    return see_other(reverse("sign_in"))


def proceed(request: HttpRequest, first: FirstFactor) -> HttpResponseBase:
    """Continue after the first factor: with the second factor if required, else with the organisation."""
    if not second_factor_is_due(first):
        return choose(request, first, strong=False)
    first_factor_keep(request, first)
    return see_other(reverse("sign_in_code"))


def choose(request: HttpRequest, first: FirstFactor, *, strong: bool) -> HttpResponseBase:
    """Enter the only organisation, or offer a choice. Raises Forbidden without one."""
    places = organisations_of(first.user_id, bound_to=first.bound_to)
    if not places:
        raise Forbidden("You are a member of no organisation here.", rule="no_membership")
    if len(places) > 1:
        first_factor_keep(request, first, strong=strong)
        return see_other(reverse("sign_in_organisation"))
    return enter(request, first, places[0], strong=strong)


def enter(request: HttpRequest, first: FirstFactor, place: Organisation, *, strong: bool) -> HttpResponseBase:
    person = session_begin(
        first=first,
        strong=strong,
        place=place,
        request_id=request_id(request),
        context=web_context(request),
        agent=client_agent(request),
        zone=client_zone(request),
    )
    sign_in(request, person)
    response = see_other(next_page(request) or first_page(person.actor))
    next_forget(response)
    browser_trust(request, response, first)
    return response


def first_factor_of(actor: Actor, way: Way) -> FirstFactor:
    """Return the first factor of a sign-in link: a tenant's link opens that tenant, an operator's opens all."""
    assert actor.member_id is not None
    bound_to = None if actor.is_proved else actor.tenant_id
    return FirstFactor(user_id=member_user(actor=actor), bound_to=bound_to, way=way)


@form_page
def purpose(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Set the purpose of this browser: memories bound to other purposes are not shown."""
    form = PurposeForm(values_of(request), initial={"purpose": actor.context.purpose})
    if not form.is_valid():
        context = {"form": form, "known": list_purposes(actor)}
        return draw(request, "governance/purpose.html", context, status=form.status)
    request.session[PURPOSE] = form.cleaned_data["purpose"]
    return see_other(_next_page(request) or reverse("purpose"))


@post_page
def persona_choose(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Set or clear the persona for new memories of this browser."""
    wanted = uuid_or_none(request.POST.get("persona", ""))
    request.session.pop(PERSONA, None)
    if wanted is not None:
        chosen = persona_show(actor=actor, persona_id=wanted)
        request.session[PERSONA] = {"id": str(chosen.id), "name": chosen.name}
    return see_other(_next_page(request) or reverse("home"))


def _next_page(request: HttpRequest) -> str:
    """Return the page of this site that a form came from, or the default."""
    wanted = request.POST.get("next", "")
    return wanted if is_here(request, wanted) else ""


def _use_link(request: HttpRequest, token: str) -> HttpResponseBase:
    try:
        actor = sign_in_link_use(token=token, request_id=request_id(request), address=client_address(request))
    except NotFound:
        return _draw_spent_link(request)
    return proceed(request, first_factor_of(actor, Way.LINK))


def _draw_spent_link(request: HttpRequest) -> HttpResponseBase:
    context = {"hours": settings.SIGN_IN_LINK_HOURS}
    return draw(request, "governance/sign_in_link_spent.html", context, status=HTTPStatus.NOT_FOUND)


def _draw_sign_in(request: HttpRequest, slug: str, form: SignInForm, *, status: int | None = None) -> HttpResponseBase:
    provider = provider_of(slug) if slug else None
    context = {"hours": settings.SIGN_IN_LINK_HOURS, "slug": slug, "provider": provider, "form": form}
    return draw(request, "governance/sign_in.html", context, status=status or form.status)


def _actor(request: HttpRequest) -> Actor | None:
    return actor_of_session(request, web_context(request))
