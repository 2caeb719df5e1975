"""Pages: the wrappers that check the reader, rendering, and error pages."""

import re
from collections.abc import Callable, Mapping
from functools import partial, wraps
from http import HTTPStatus
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlsplit

from django.db import Error as DatabaseFailure
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from governance.accounts.rules import SignedIn
from governance.actor import Actor
from governance.database import run_again
from governance.denials import record_and_return_denial
from governance.errors import (
    Conflict,
    DomainError,
    Forbidden,
    Invalid,
    NotFound,
    SecondFactorRequired,
    Unauthenticated,
    Unavailable,
)
from governance.failures import database_failure
from governance.web.explanations import SESSION_ENDED, detail_of, explanation_of
from governance.web.return_page import is_here
from governance.web.sessions import actor_of_session, request_id, web_actor, web_context, web_person
from governance.web.undo import drop_deed

Asked = ParamSpec("Asked")
View = Callable[Concatenate[HttpRequest, Asked], HttpResponseBase]
PageView = Callable[Concatenate[HttpRequest, Actor, Asked], HttpResponseBase]
PersonView = Callable[Concatenate[HttpRequest, SignedIn, Asked], HttpResponseBase]


def answer_errors(view: View[Asked]) -> View[Asked]:
    """Turn errors of `view` into pages. Browsers do not cache its responses."""

    @wraps(view)
    def answer(request: HttpRequest, /, *args: Asked.args, **kwargs: Asked.kwargs) -> HttpResponseBase:
        try:
            response = view(request, *args, **kwargs)
        except DomainError as failure:
            response = refusal(request, failure)
        except DatabaseFailure as error:
            known = database_failure(error)
            if known is None:
                raise
            response = refusal(request, known)
        response.headers.setdefault("Cache-Control", "no-store")
        patch_vary_headers(response, ["HX-Request"])
        return response

    return answer


SECRET = re.compile("csrf|key|pass|secret|token|code")  # in names of fields
SHORT = 20  # characters of an id, a path or a choice; a text of several words may be shorter


def page(view: PageView[Asked]) -> View[Asked]:
    """Wrap a view for members: it gets the session's actor, or the reader is asked to sign in."""

    @wraps(view)
    def with_actor(request: HttpRequest, /, *args: Asked.args, **kwargs: Asked.kwargs) -> HttpResponseBase:
        request.is_for_members = True  # type: ignore[attr-defined]
        actor = web_actor(request)
        request.actor = actor  # type: ignore[attr-defined]
        with timezone.override(request.timezone):  # type: ignore[attr-defined]
            is_safe = request.method in {"GET", "HEAD"}
            try:
                response = run_again(partial(view, request, actor, *args, **kwargs), is_safe=is_safe)
            except (Conflict, NotFound):
                drop_deed(request)
                raise
            drop_deed(request)
            return response

    return answer_errors(with_actor)


def safe_page(view: PageView[Asked]) -> View[Asked]:
    """Wrap a view that shows a page for members, by GET and HEAD."""
    return require_safe(page(view))


def form_page(view: PageView[Asked]) -> View[Asked]:
    """Wrap a view that shows a page for members, and takes its form by POST."""
    return require_http_methods(["GET", "HEAD", "POST"])(page(view))


def post_page(view: PageView[Asked]) -> View[Asked]:
    """Wrap a view of members that takes a form alone."""
    return require_POST(page(view))


def person_page(view: PersonView[Asked]) -> View[Asked]:
    """Wrap a view for a person's own account; it opens even before a required second factor is set up."""

    @wraps(view)
    def with_person(request: HttpRequest, /, *args: Asked.args, **kwargs: Asked.kwargs) -> HttpResponseBase:
        person = web_person(request)
        request.actor = person.actor  # type: ignore[attr-defined]
        with timezone.override(person.timezone):
            return view(request, person, *args, **kwargs)

    return answer_errors(with_person)


def draw(
    request: HttpRequest, template: str, context: Mapping[str, Any] | None = None, *, status: int = HTTPStatus.OK
) -> HttpResponse:
    """Render a page. governance/web/context.py adds the data of its frame."""
    return render(request, template, context, status=status)


def see_other(address: str) -> HttpResponseRedirect:
    """Redirect to `address` after a POST (303)."""
    response = HttpResponseRedirect(address)
    response.status_code = HTTPStatus.SEE_OTHER
    return response


def go(request: HttpRequest, address: str) -> HttpResponse:
    """Redirect to another page. htmx gets a header, because it would load a redirect's target into part of the page."""
    if wants_part(request):
        return HttpResponse(status=HTTPStatus.NO_CONTENT, headers={"HX-Redirect": address})
    return see_other(address)


def wants_events(request: HttpRequest) -> bool:
    """Return whether the caller is a script that reads a stream, and reads errors as JSON."""
    return "text/event-stream" in request.headers.get("Accept", "")


def wants_part(request: HttpRequest) -> bool:
    """Return whether htmx requests a part of a page."""
    return bool(request.htmx)  # type: ignore[attr-defined]


def recognise(request: HttpRequest) -> None:
    """Set the signed-in person for error pages without a view, so that they keep their navigation."""
    if not hasattr(request, "session"):
        return
    try:
        actor = actor_of_session(request, web_context(request))
    except DatabaseFailure:
        return  # the page says what it says without the database
    if actor is not None:
        request.actor = actor  # type: ignore[attr-defined]


def refusal_sentence(request: HttpRequest, failure: Forbidden) -> str:
    """Return the sentence that a form shows after a policy refused it, and record the denial. The form keeps its text.

    Raises `failure` if no policy decided; AuditUnavailable.
    """
    if not failure.policy:
        raise failure
    recorded = _record_denial(request, failure)
    if recorded is not failure:
        raise recorded
    return f"{detail_of(failure)} {explanation_of(failure).advice}"


def refusal(request: HttpRequest, failure: DomainError) -> HttpResponse:
    """Return the response for `failure`: a page, a part of one, or JSON for a script. Records a denial."""
    failure = _record_denial(request, failure)
    if isinstance(failure, Unauthenticated):
        is_for_members = getattr(request, "is_for_members", False)  # never of a sign-in or an account
        texts = _read_long_texts(request) if is_for_members and not wants_events(request) else []
        return _session_end_page(request, failure, texts) if texts else _redirect_to_sign_in(request)
    if isinstance(failure, SecondFactorRequired) and not wants_events(request):
        return go(request, reverse("second_factor"))
    if wants_events(request):
        return _problem_json(request, failure)
    return _problem_page(request, failure, "shared/_error.html" if wants_part(request) else "shared/error.html")


def _session_end_page(request: HttpRequest, failure: Unauthenticated, texts: list[str]) -> HttpResponse:
    """Show what was written into a form after its session had ended, with the way to sign in and back."""
    before = _previous_page(request) or reverse("home")
    context = {
        "status": HTTPStatus.UNAUTHORIZED,
        "failure": failure,
        "explanation": SESSION_ENDED,
        "typed": texts,
        "sign_in": f"{reverse('sign_in')}?{urlencode({'next': before})}",
    }
    template = "shared/_error.html" if wants_part(request) else "shared/error.html"
    return draw(request, template, context, status=HTTPStatus.UNAUTHORIZED)


def _problem_page(request: HttpRequest, failure: DomainError, template: str) -> HttpResponse:
    status = _status(failure)
    context: dict[str, Any] = {
        "status": status,
        "failure": failure,
        "explanation": explanation_of(failure),
        "detail": detail_of(failure),
        "before": _previous_page(request),
        "typed": _read_long_texts(request) if isinstance(failure, Forbidden) and failure.policy else [],
    }
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        context["me"] = context["shell"] = None  # the database may not be there to say who reads, and what they may
    response = draw(request, template, context, status=status)
    if failure.retry_after is not None:
        response["Retry-After"] = str(failure.retry_after)
    elif isinstance(failure, Unavailable):
        response["Retry-After"] = "5"
    return response


def _previous_page(request: HttpRequest) -> str:
    """Return the address of the page with the refused form; empty if unknown."""
    known = (request.POST.get("next", ""), request.headers.get("Referer", "")) if request.method == "POST" else ()
    return next(
        (address for address in known if is_here(request, address) and urlsplit(address).path != request.path), ""
    )


def _read_long_texts(request: HttpRequest) -> list[str]:
    """Return the texts that somebody wrote into a refused form, so that nobody has to type them twice; no key and no
    password."""
    texts = [str(text) for name, text in request.POST.items() if not SECRET.search(name)]
    return [text for text in texts if len(text) > SHORT or " " in text.strip() or not text.isascii()]


def _problem_json(request: HttpRequest, failure: DomainError) -> JsonResponse:
    body = {"code": failure.code, "detail": explanation_of(failure).text, "request_id": _request_id(request)}
    return JsonResponse(body, status=_status(failure))


def _redirect_to_sign_in(request: HttpRequest) -> HttpResponse:
    """Redirect to the sign-in page, which leads back. A script gets the address instead of a redirect."""
    here = request.get_full_path() if request.method == "GET" else ""
    address = f"{reverse('sign_in')}?{urlencode({'next': here})}" if here else reverse("sign_in")
    if wants_part(request):
        return HttpResponse(status=HTTPStatus.NO_CONTENT, headers={"HX-Redirect": reverse("sign_in")})
    if wants_events(request):
        return JsonResponse({"code": Unauthenticated.code, "sign_in": address}, status=HTTPStatus.UNAUTHORIZED)
    return see_other(address)


def _record_denial(request: HttpRequest, failure: DomainError) -> DomainError:
    actor: Actor | None = getattr(request, "actor", None)
    if actor is None or not isinstance(failure, Forbidden):
        return failure
    return record_and_return_denial(actor=actor, denial=failure, path=request.path)


def _status(failure: DomainError) -> int:
    """Return the HTTP status of an error page: 422 for an invalid form, where the REST contract has 400."""
    return HTTPStatus.UNPROCESSABLE_ENTITY if isinstance(failure, Invalid) else failure.status


def _request_id(request: HttpRequest) -> str:
    return request_id(request) if hasattr(request, "request_id") else ""
