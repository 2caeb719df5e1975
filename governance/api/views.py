"""The base class of REST views, and helpers that read an address or a header."""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial, wraps
from typing import Any, TypeVar, cast
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve
from django.utils import timezone
from django.utils.cache import patch_cache_control
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from governance.actor import Actor
from governance.api.authentication import actor_of
from governance.api.descriptions import Operation, read
from governance.api.idempotency import Once, once
from governance.api.unknown_names import describe_unknown
from governance.database import acting, run_again
from governance.errors import DomainError, FieldError, Invalid, InvalidETag
from governance.idempotency.services import Reply
from governance.policies.heavy import heavy_call
from governance.policies.rates import request_count
from governance.versions import MALFORMED, VersionLists, read_versions

ETAG = r'(?:W/)?"[!#-~]*"'  # RFC 9110 §8.8.3, without the letters beyond ASCII
ETAGS = re.compile(rf"{ETAG}(?:\s*,\s*{ETAG})*")
VERSION = re.compile(r'"(\d{1,9})"')
QUOTED = re.compile(r'"([^"]*)"')
Handler = TypeVar("Handler", bound=Callable[..., Any])
Known = TypeVar("Known")
METHODS = frozenset({"get", "post", "put", "patch", "delete"})
SAFE = frozenset({"get"})
SAFE_METHODS = frozenset({"GET", "HEAD"})
ZONE_HEADER = "X-Memory-Timezone"
ANY_VERSION = range(1, 10**9)


class ApiView(APIView):
    """The base of REST views: each handler takes the actor, calls one service, and returns its result, of which the
    schema that the handler describes makes the response.

    Query parameters are read only after the object was found and the permission checked: 404 and 403 come before 400.
    `longest_body`: the bytes that an authenticated caller may send; the server reads no more. `address_of_made`: the
    list that has the objects that a POST creates, if it is not the POST's own address.
    """

    longest_body: int = settings.BODY_BYTES
    address_of_made: str = ""
    ask: Callable[[], object] = staticmethod(lambda: None)
    dry_run = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in METHODS & vars(cls).keys():
            setattr(cls, name, _allow_rerun(vars(cls)[name], is_safe=name in SAFE))

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with timezone.override(_find_zone(request)):
            answer: HttpResponseBase = super().dispatch(request, *args, **kwargs)
            return answer

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate the caller (401), then check the request limits (429) and the zone (400)."""
        super().initial(request, *args, **kwargs)
        request_count(actor_of(request))
        if _find_zone(request) is None and ZONE_HEADER in request.headers:
            raise Invalid(errors=[FieldError(ZONE_HEADER, "a zone such as Europe/Berlin is needed")])

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """Add the address of a created object, and headers that only let the caller store the response, to be
        revalidated.
        """
        final: Response = super().finalize_response(request, response, *args, **kwargs)
        patch_cache_control(final, private=True, no_cache=True)
        if final.status_code == 201 and (made := _find_created_object(final.data)):
            where = (self.address_of_made or request.path) + f"{made['id']}/"
            if _can_be_read(where):
                final.headers.setdefault("Location", where)
            if isinstance(made.get("version"), int):
                final.headers.setdefault("ETag", f'"{made["version"]}"')
        return final

    def actor(self) -> Actor:
        return actor_of(self.request)

    def operation(self) -> Operation:
        """Return the description of the handler that answers this request."""
        described: Operation = getattr(self, str(self.request.method).lower()).operation
        return described

    def answer(self, result: object) -> Response:
        """Return the response whose body the handler's schema makes of `result`."""
        operation = self.operation()
        if self.request.method in SAFE_METHODS:
            refuse_unknown_parameters(self.request, *operation.parameters)
        return Response(operation.show(result), status=operation.status)

    def read_body(self, ask: Callable[[], object] = lambda: None, parse: Callable[[dict[str, Any]], Any] = dict) -> Any:
        """Check the address of a write, and return its validated body, of which `parse` makes what the handler needs.

        ask: see `after`; it also runs before `post_once` repeats a stored response. Raises Invalid.
        """
        operation, self.ask = self.operation(), ask
        with self.after(ask):
            refuse_unknown_parameters(self.request, *operation.parameters)
            self.dry_run = "dry_run" in operation.parameters and flag(self.request, "dry_run")
            return parse(read(operation.body, self.request) if operation.body else {})

    @contextmanager
    def after(self, ask: Callable[[], object]) -> Iterator[None]:
        """Read the request in this block so that errors of the call (404, 403, 423, 412) come before errors of the
        body.

        ask: raises the errors of the call; its writes are rolled back.
        """
        try:
            yield
        except (APIException, DomainError):
            with acting(self.actor()):
                ask()
                raise

    def rehearse(self, call: Callable[[], Known]) -> Known:
        """Return the result of `call`, and roll back all its writes."""
        with acting(self.actor()):
            result = call()
            transaction.set_rollback(True)
        return result

    def once(
        self, *, ask: Callable[[], object] = lambda: None, reader: Callable[[], Actor] | None = None
    ) -> AbstractContextManager[Once]:
        """Return the context of this POST's Idempotency-Key, with its stored response, if any.

        `ask`: raises the errors of the call; without it the handler has checked already. `reader`: returns the actor
        who must be able to read the response, if it is another one.
        """
        return once(self.request, self.actor(), ask=ask, reader=reader)

    def post_once(self, call: Callable[[], object], *, ask: Callable[[], object] | None = None) -> Response:
        """Answer a POST under its Idempotency-Key, if it has one: `call` runs in the transaction that stores its
        response. It returns a Reply, or what `answer` takes.

        `ask`: see `once`; by default that of `read_body`.
        """
        with self.once(ask=ask or self.ask) as once:
            if once.reply is None:
                with acting(self.actor()):
                    result, operation = call(), self.operation()
                    once.store(result if isinstance(result, Reply) else Reply(operation.status, operation.show(result)))
        return once.response()


def _find_zone(request: HttpRequest | Request) -> ZoneInfo | None:
    """Return the zone that the call names, whose days its dates mean; None without one, and for an unknown one."""
    name = request.headers.get(ZONE_HEADER, "")
    return ZoneInfo(name) if name in _list_zones() else None


@cache
def _list_zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _find_created_object(body: Any) -> dict[str, Any] | None:
    """Return the object in the response of a call that created one object, else None."""
    results = body.get("results", [body]) if isinstance(body, dict) else []
    result = results[0] if len(results) == 1 else None
    return result if isinstance(result, dict) and "id" in result else None


def _can_be_read(address: str) -> bool:
    try:
        view = resolve(address).func
    except Resolver404:
        return False
    return hasattr(getattr(view, "view_class", None), "get")


def _allow_rerun(handler: Handler, *, is_safe: bool) -> Handler:
    """Return a handler that runs again after data is read which its transaction lacked."""

    @wraps(handler)
    def run(view: ApiView, request: Request, *args: Any, **kwargs: Any) -> Any:
        result = run_again(partial(handler, view, request, *args, **kwargs), is_safe=is_safe)
        return result if isinstance(result, HttpResponseBase) else view.answer(result)

    return cast("Handler", run)


def heavy(handler: Handler) -> Handler:
    """Limit the number of a tenant's calls that run at once. Raises TooManyAtOnce."""

    @wraps(handler)
    def call_bounded(view: ApiView, request: Request, *args: Any, **kwargs: Any) -> Any:
        with heavy_call(view.actor()):
            return handler(view, request, *args, **kwargs)

    return cast("Handler", call_bounded)


def expected_versions(request: Request) -> Collection[int] | None:
    """Return the versions that If-Match allows (RFC 9110 §13.1.1), any version for `*`; None without the header.

    A header that is no list of ETags gives MALFORMED: `version_check` answers 400, but only after 404 and 403.
    """
    header = request.headers.get("If-Match")
    if header is None:
        return None
    if header.strip() == "*":
        return ANY_VERSION
    if not ETAGS.fullmatch(header.strip()):
        return MALFORMED
    return frozenset(int(number) for number in VERSION.findall(header))


def expected_version_lists(request: Request) -> VersionLists | None:
    """Return the versions of several objects that If-Match allows, as in "2-1"; None without the header, and for `*`.

    Raises InvalidETag.
    """
    header = request.headers.get("If-Match", "*").strip()
    if header == "*":
        return None
    if not ETAGS.fullmatch(header):
        raise InvalidETag('Write If-Match with quotes, as in "2-1".')
    return read_versions(QUOTED.findall(header))


def refuse_unknown_parameters(request: Request, *known: str) -> None:
    """Refuse query parameters other than `known`, since a misspelt one would be ignored. Raises Invalid."""
    unknown = sorted(set(request.query_params) - set(known))
    if unknown:
        listed = sorted(known)
        messages = {name: describe_unknown(name, listed) if known else "this call knows none" for name in unknown}
        raise Invalid(errors=[FieldError(name, f"unknown; {message}") for name, message in messages.items()])


def flag(request: Request, name: str, *, default: bool = False) -> bool:
    """Return the boolean `?name=` of the address. Raises Invalid for anything but true and false."""
    text = request.query_params.get(name, "true" if default else "false")
    if text not in {"true", "false"}:
        raise Invalid(errors=[FieldError(name, "true or false")])
    return text == "true"
