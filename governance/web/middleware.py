"""Middleware of every request: id, strict content security policy, language, and redirects of misspelt addresses."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.middleware.http import ConditionalGetMiddleware
from django.middleware.locale import LocaleMiddleware
from django.urls import Resolver404, get_script_prefix, resolve
from django.utils import translation

from governance.actor import Actor
from governance.ids import uuid7
from governance.trace import work_begins

API = "/api/v1/"
Handler = Callable[[HttpRequest], HttpResponse]
ACCEPTABLE_ID = re.compile(r"(?!(?:cli|job|schedule|counts)-)[A-Za-z0-9_.:-]{8,64}")  # those are the product's own
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


@dataclass
class Caller:
    """The actor of a request, set once it is authenticated, even if the request is then refused.

    REST framework's requests share it with the Django request that they wrap.
    """

    actor: Actor | None = None


class RequestIdMiddleware:
    """Sets `X-Request-ID`: the caller's if valid, else a new one; returned, audited, and part of every problem.

    Also gives each request its `caller`.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        offered = request.headers.get("X-Request-ID", "")
        request_id = offered if ACCEPTABLE_ID.fullmatch(offered) else str(uuid7())
        request.request_id = request_id  # type: ignore[attr-defined]
        work_begins(request_id)
        request.caller = Caller()  # type: ignore[attr-defined]
        response = self.get_response(request)
        response["X-Request-ID"] = request_id
        return response


class ContentSecurityPolicyMiddleware:
    """Forbids inline scripts and styles, and foreign sources. Views may set another policy (the API docs do)."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.setdefault("Content-Security-Policy", POLICY)
        return response


class SlashMiddleware(CommonMiddleware):
    """Redirects reads to the address with a trailing slash; other methods get 404, since a redirect would lose their
    body.
    """

    def should_redirect_with_slash(self, request: HttpRequest) -> bool:
        return request.method in {"GET", "HEAD"} and super().should_redirect_with_slash(request)


class OnlyPostMiddleware:
    """Leads a reader who opens an address that only takes forms, as after signing in again, to the page above it."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        is_page = request.method in {"GET", "HEAD"} and "text/html" in request.headers.get("Accept", "")
        if response.status_code != HTTPStatus.METHOD_NOT_ALLOWED or not is_page or request.path_info.startswith(API):
            return response
        return HttpResponseRedirect(f"{get_script_prefix().rstrip('/')}{_page_above(request.path_info)}")


def _page_above(path: str) -> str:
    """Return the nearest address above a path that exists; at last the start page."""
    while path != "/":
        path = path.rstrip("/").rpartition("/")[0] + "/"
        with suppress(Resolver404):
            resolve(path)
            return path
    return path


class UnchangedMiddleware(ConditionalGetMiddleware):
    """Sets ETags and answers 304 for the API. An ETag is the version of a memory or policy, else a hash of the
    response.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.status_code != 200 or not request.path_info.startswith(API):
            return response
        return super().process_response(request, response)


class LanguageMiddleware(LocaleMiddleware):
    """Activates the reader's language for pages, and English for the API, whose texts programs may compare."""

    def process_request(self, request: HttpRequest) -> None:
        if not request.path_info.startswith(API):
            super().process_request(request)
            return
        translation.activate("en")
        request.LANGUAGE_CODE = "en"
