"""The Django admin for operators: limited to the tenant of their session by row-level security, with every view
audited.
"""

from functools import wraps
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver
from django.utils import timezone

from governance.accounts.rules import SignedIn
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import NotFound, SecondFactorRequired
from governance.tenants.selectors import me_get
from governance.vocabulary import Verb
from governance.web.pages import answer_errors
from governance.web.sessions import web_person

# The product has its own sign-in and sign-out pages, and the audit log replaces the admin's history.
LEFT_OUT = frozenset(
    {"login", "logout", "password_change", "password_change_done", "autocomplete", "view_on_site", None}
)


def operator_of(request: HttpRequest) -> SignedIn:
    """Return the operator of the request, whose session no member of a tenant could have started.

    Raises Unauthenticated; SecondFactorRequired; NotFound for everybody else.
    """
    person = web_person(request)
    if person.lacks_second_factor:
        raise SecondFactorRequired("Set up your second factor, or sign in with it.", rule="second_factor")
    if not (person.is_operator and person.actor.is_proved):
        raise NotFound
    return person


class OperatorSite(admin.AdminSite):
    site_header = "MemOS Web: operators"
    site_title = "MemOS Web"
    index_title = "One organisation"
    site_url = "/overview/"
    index_template = "admin/operators.html"

    def has_permission(self, request: HttpRequest) -> bool:
        """Return True: every view goes through `admin_view`, which has checked the operator."""
        return hasattr(request, "actor")

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Return `view` for operators only, run inside the transaction of their tenant."""

        @wraps(view)
        def inside(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            person = operator_of(request)
            request.actor = person.actor  # type: ignore[attr-defined]
            with timezone.override(person.timezone), acting(person.actor):
                response = view(request, *args, **kwargs)
                return response.render() if isinstance(response, TemplateResponse) else response

        return answer_errors(inside)

    def get_urls(self) -> list[URLPattern | URLResolver]:
        return [pattern for pattern in super().get_urls() if getattr(pattern, "name", "") not in LEFT_OUT]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        return {**super().each_context(request), "me": me_get(actor=request.actor)}  # type: ignore[attr-defined]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        self._record(request)
        return super().index(request, extra_context)

    def app_index(self, request: HttpRequest, app_label: str, extra_context: Any = None) -> TemplateResponse:
        self._record(request)
        return super().app_index(request, app_label, extra_context)

    @staticmethod
    def _record(request: HttpRequest) -> None:
        actor: Actor = request.actor  # type: ignore[attr-defined]
        record(actor=actor, verb=Verb.OPERATOR_VIEWED, object_type="tenant", object_ids=[actor.tenant_id])


site = OperatorSite(name="admin")
