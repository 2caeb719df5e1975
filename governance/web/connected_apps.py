"""The page on which a member lets an application use their memory, after OAuth's authorization request."""

from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.utils.translation import gettext_lazy as _

from governance.accounts.connected_apps import DAYS, AppRequest, app_connect, read_app_request
from governance.actor import Actor
from governance.errors import Forbidden
from governance.vocabulary import PrincipalKind, Scope
from governance.web.middleware import POLICY
from governance.web.page_forms import PageForm, values_of
from governance.web.pages import draw, form_page

MEANINGS = {
    Scope.MEMORIES_READ: _("read and search memories"),
    Scope.MEMORIES_WRITE: _("add, change and delete memories"),
}


class ConnectionForm(PageForm):
    """Rights of an application, and the time that they last."""

    scopes = forms.TypedMultipleChoiceField(
        label=_("Scopes"),
        coerce=Scope,
        widget=forms.CheckboxSelectMultiple(),
        error_messages={"required": _("Choose at least one.")},
    )
    days = forms.TypedChoiceField(
        label=_("Days until the key ends"), choices=[(days, days) for days in DAYS], coerce=int, initial=90
    )

    def __init__(self, data: QueryDict | None, *, asked: AppRequest) -> None:
        super().__init__(data, initial={"scopes": asked.scopes})
        field = self.fields["scopes"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(scope.value, meaning) for scope, meaning in MEANINGS.items() if scope in asked.scopes]


@form_page
def connect(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Ask whether an application may connect; the answer goes to the application."""
    if actor.principal_kind is not PrincipalKind.MEMBER:
        raise Forbidden("Members alone connect applications.", rule="own_key")
    token = (request.POST if request.method == "POST" else request.GET).get("request", "")
    asked = read_app_request(token)
    if request.method == "POST" and request.POST.get("answer") != "yes":
        return _send(asked, error="access_denied")
    form = ConnectionForm(values_of(request), asked=asked)
    code = form.made_by(lambda: app_connect(actor=actor, asked=asked, **form.cleaned_data))
    return _send(asked, code=code) if code else _ask(request, asked, token, form)


def _name_target(uri: str) -> str:
    """Return the host that gets the key, or for an application on the person's machine its address with the scheme."""
    parts = urlsplit(uri)
    return parts.netloc if parts.scheme == "https" else uri.partition("?")[0]


def _ask(request: HttpRequest, asked: AppRequest, token: str, form: ConnectionForm) -> HttpResponse:
    context = {"asked": asked, "token": token, "form": form, "target": _name_target(asked.redirect_uri)}
    response = draw(request, "governance/connect.html", context, status=form.status)
    # Browsers hold a redirect that answers a form to the policy of the form's page.
    response["Content-Security-Policy"] = POLICY.replace("form-action 'self'", f"form-action 'self' {_origin(asked)}")
    response["Cache-Control"] = "no-store"
    return response


def _origin(asked: AppRequest) -> str:
    """The source of a redirect URI in a policy: its scheme alone, if it is no web address."""
    parts = urlsplit(asked.redirect_uri)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in {"http", "https"} else f"{parts.scheme}:"


def _send(asked: AppRequest, **answer: str) -> HttpResponse:
    """Redirect to the application. Django's own redirects know no scheme of desktop applications."""
    parts = urlsplit(asked.redirect_uri)
    state = {"state": asked.state} if asked.state is not None else {}
    query = urlencode([*parse_qsl(parts.query), *answer.items(), *state.items()])
    address = urlunsplit(parts._replace(query=query))
    return HttpResponse(status=HTTPStatus.SEE_OTHER, headers={"Location": address, "Cache-Control": "no-store"})
