"""A person's own account: password, second factor, sessions, organisations."""

from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from governance.accounts.browser_sessions import session_revoke, session_switch, sessions_revoke_others
from governance.accounts.connected_apps import own_key_revoke, own_keys_list
from governance.accounts.digests import digest_set, is_digest_wanted
from governance.accounts.factors import (
    factor_get,
    recovery_codes_renew,
    second_factor_add,
    second_factor_picture,
    second_factor_remove,
    second_factor_secret,
)
from governance.accounts.own_details import display_name_set, time_zone_set
from governance.accounts.passwords import has_password, password_set
from governance.accounts.rules import FirstFactor, SignedIn, Way
from governance.accounts.selectors import (
    manages_person,
    organisations_of,
    person_email,
    require_proved_address,
    sessions_list,
)
from governance.tenants.selectors import me_get
from governance.web.account_forms import CodeForm, NameForm, PasswordForm, TimeZoneForm
from governance.web.page_forms import PageForm, values_of
from governance.web.pages import draw, go, person_page, see_other, wants_part
from governance.web.sessions import client_zone, mark_strong, sign_in
from governance.web.zones import ZONES

SECRET = "second_factor_secret"  # in the sealed session, until a code of it was seen


@require_http_methods(["GET", "HEAD"])
@person_page
def account(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    return _account(request, person)


@require_POST
@person_page
def password(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    form = PasswordForm(request.POST)
    if not form.is_done_by(lambda: password_set(person=person, **form.cleaned_data)):
        return _account(request, person, {"password_form": form})
    request.session.cycle_key()
    return see_other(f"{reverse('account')}?changed=password")


@require_POST
@person_page
def display_name(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    """Set the name by which others see the person."""
    form = NameForm(request.POST)
    if not form.is_done_by(lambda: display_name_set(person=person, **form.cleaned_data)):
        return _account(request, person, {"name_form": form})
    return see_other(f"{reverse('account')}?changed=name")


@require_POST
@person_page
def time_zone(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    form = TimeZoneForm(request.POST)
    if not form.is_done_by(lambda: time_zone_set(person=person, **form.cleaned_data)):
        return _account(request, person, {"zone_form": form})
    return see_other(f"{reverse('account')}?changed=timezone")


@require_POST
@person_page
def digest(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    """Turn the mailed digest of notices on or off."""
    digest_set(person=person, wanted=request.POST.get("digest") == "on")
    return see_other(f"{reverse('account')}?changed=digest#digest-part")


@require_http_methods(["GET", "HEAD", "POST"])
@person_page
def second_factor(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    """Show the second factor or its set-up; ask for a code if the session began without one."""
    require_proved_address(person)
    active = factor_get(person=person).active
    if request.method != "POST" and active and person.strong:
        return see_other(reverse("account"))
    return _check_second_factor(request, person) if active else _set_up(request, person)


@require_POST
@person_page
def second_factor_end(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    form = CodeForm(request.POST)
    if not form.is_done_by(lambda: second_factor_remove(person=person, **form.cleaned_data)):
        return _account(request, person, {"code_form": form})
    return see_other(f"{reverse('account')}?changed=factor")


@require_POST
@person_page
def recovery_codes(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    form = CodeForm(request.POST)
    codes = form.made_by(lambda: recovery_codes_renew(person=person, **form.cleaned_data))
    if codes is None:
        return _account(request, person, {"code_form": form})
    return draw(request, "governance/account/codes.html", {"codes": codes})


@require_POST
@person_page
def own_key_end(request: HttpRequest, person: SignedIn, key_id: UUID) -> HttpResponseBase:
    """Revoke a key of the person's own."""
    own_key_revoke(actor=person.actor, key_id=key_id)
    return see_other(f"{reverse('account')}?changed=keys#keys-part")


@require_POST
@person_page
def session_out(request: HttpRequest, person: SignedIn, session_id: UUID) -> HttpResponseBase:
    session_revoke(person=person, session_id=session_id)
    if session_id == person.session_id:
        request.session.flush()
        return go(request, reverse("sign_in"))
    return _sessions(request, person)


@require_POST
@person_page
def sessions_out(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    sessions_revoke_others(person=person)
    return _sessions(request, person)


@require_http_methods(["GET", "HEAD", "POST"])
@person_page
def organisations(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    """Show the person's organisations; POST enters another one."""
    if request.method == "POST":
        there = session_switch(person=person, member_id=_uuid(request.POST.get("organisation", "")))
        sign_in(request, there)
        return see_other(reverse("home"))
    places = organisations_of(person.user_id, bound_to=person.bound_to)
    template = (
        "governance/account/_organisations.html" if wants_part(request) else "governance/account/organisations.html"
    )
    return draw(request, template, {"places": places, "here": person.actor.tenant_id})


def _account(request: HttpRequest, person: SignedIn, sent: dict[str, PageForm] | None = None) -> HttpResponseBase:
    """Draw the page with its forms; sent: the one that has errors."""
    is_proved = manages_person(person)
    forms: dict[str, PageForm] = {
        "password_form": PasswordForm(),
        "code_form": CodeForm(),
        "name_form": NameForm(initial={"name": me_get(actor=person.actor).display_name}),
        "zone_form": TimeZoneForm(initial={"timezone": person.timezone}),
        **(sent or {}),
    }
    context = {
        "person": person,
        "is_proved": is_proved,
        "has_password": is_proved and has_password(person=person),
        "factor": factor_get(person=person) if is_proved else None,
        "sessions": sessions_list(person=person),
        "own_keys": own_keys_list(actor=person.actor),
        "changed": request.GET.get("changed", ""),
        "timezone": person.timezone,
        "zones": ZONES,
        "browser_zone": client_zone(request),
        "is_digest_wanted": is_digest_wanted(person=person),
        **forms,
    }
    return draw(request, "governance/account/account.html", context, status=max(form.status for form in forms.values()))


def _sessions(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    if not wants_part(request):
        return see_other(reverse("account"))
    return draw(request, "governance/account/_sessions.html", {"sessions": sessions_list(person=person)})


def _set_up(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    secret = request.session.get(SECRET)
    if request.method == "POST" and not secret:
        return see_other(reverse("second_factor"))
    secret = request.session.setdefault(SECRET, secret or second_factor_secret())
    form = CodeForm(values_of(request))
    form["code"].label = _("Code that the app shows now")
    codes = form.made_by(lambda: second_factor_add(person=person, secret=secret, **form.cleaned_data))
    if codes is None:
        picture = second_factor_picture(email=person_email(person=person), secret=secret)
        context = {"secret": secret, "picture": picture, "form": form, "person": person}
        return draw(request, "governance/account/second_factor.html", context, status=form.status)
    del request.session[SECRET]
    mark_strong(request)
    return draw(request, "governance/account/codes.html", {"codes": codes})


def _check_second_factor(request: HttpRequest, person: SignedIn) -> HttpResponseBase:
    first = FirstFactor(user_id=person.user_id, bound_to=person.bound_to, way=Way.PASSWORD)
    form = CodeForm(values_of(request))
    if not form.is_done_by(lambda: form.pass_second_factor(request, first)):
        return draw(request, "governance/account/second_factor_code.html", {"form": form}, status=form.status)
    mark_strong(request)
    return see_other(reverse("home"))


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        return UUID(int=0)
