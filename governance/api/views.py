"""The base of every REST view, and what its handlers read from an address or a header."""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from typing import Any, TypeVar, cast

from django.conf import settings
from django.db import transaction
from django.urls import Resolver404, resolve
from django.utils.cache import patch_cache_control
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from governance.actor import Actor
from governance.api.authentication import actor_of
from governance.api.idempotency import Once, once
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
ANY_VERSION = range(1, 10**9)


class ApiView(APIView):
    """Each handler: the actor, one service, an answer.

    What an address asks for is read once the object was found and the permission asked: 404 and 403 come before 400.
    `longest_body`: bytes that a caller whom the headers prove may send; the server reads no more.
    `address_of_made`: the list that has what a POST makes, if it is not the address of the POST.
    """

    longest_body: int = settings.BODY_BYTES
    address_of_made: str = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in METHODS & vars(cls).keys():
            setattr(cls, name, _allow_rerun(vars(cls)[name], is_safe=name in SAFE))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate the caller (401), then check the request limits (429)."""
        super().initial(request, *args, **kwargs)
        request_count(actor_of(request))

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """Tell the address of what was made, and that only the caller may keep an answer, and must ask again."""
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

    @contextmanager
    def after(self, ask: Callable[[], object]) -> Iterator[None]:
        """Read the request so that errors of the call (404, 403, 423, 412) come before errors of the body.

        ask: raises the errors of the call; its writes are rolled back.
        """
        try:
            yield
        except (APIException, DomainError):
            with acting(self.actor()):
                ask()
                raise

    def rehearse(self, call: Callable[[], Known]) -> Known:
        """The result of `call`, of which all that it wrote is rolled back."""
        with acting(self.actor()):
            result = call()
            transaction.set_rollback(True)
        return result

    def once(
        self, *, ask: Callable[[], object] = lambda: None, reader: Callable[[], Actor] | None = None
    ) -> AbstractContextManager[Once]:
        """The reply that this POST's Idempotency-Key has, if any.

        `ask` raises what stands against the call; without it the handler has asked already. `reader`: as whom
        the actor reads what the reply shows, if not as itself.
        """
        return once(self.request, self.actor(), ask=ask, reader=reader)

    def post_once(self, call: Callable[[], Reply], *, ask: Callable[[], object] = lambda: None) -> Response:
        """Answer a POST under its Idempotency-Key, if it has one: `call` runs in the transaction that keeps its reply.

        `ask` as in `once`.
        """
        with self.once(ask=ask) as once:
            if once.reply is None:
                with acting(self.actor()):
                    once.store(call())
        return once.response()


def _find_created_object(body: Any) -> dict[str, Any] | None:
    """Return the object that a call created, if it was one object."""
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
    """Return a handler that runs again once the data is read that its transaction lacked."""

    @wraps(handler)
    def run(view: ApiView, request: Request, *args: Any, **kwargs: Any) -> Any:
        return run_again(partial(handler, view, request, *args, **kwargs), is_safe=is_safe)

    return cast(Handler, run)


def heavy(handler: Handler) -> Handler:
    """Limit how many of a tenant's calls run at once. Raises TooManyAtOnce."""

    @wraps(handler)
    def call_bounded(view: ApiView, request: Request, *args: Any, **kwargs: Any) -> Any:
        with heavy_call(view.actor()):
            return handler(view, request, *args, **kwargs)

    return cast(Handler, call_bounded)


def expected_versions(request: Request) -> Collection[int] | None:
    """The versions that If-Match allows (RFC 9110 §13.1.1), any of them for `*`; None without the header.

    What is no list of ETags is MALFORMED: `version_check` answers 400, but only after 404 and 403.
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
    """The versions of several objects that If-Match allows, as in "2-1"; None without the header, and for `*`.

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
        message = f"unknown; known are {', '.join(sorted(known))}" if known else "unknown; this call knows none"
        raise Invalid(errors=[FieldError(name, message) for name in unknown])


def flag(request: Request, name: str, *, default: bool = False) -> bool:
    """Return the truth value `?name=` of the address. Raises Invalid for anything but true and false."""
    text = request.query_params.get(name, "true" if default else "false")
    if text not in {"true", "false"}:
        raise Invalid(errors=[FieldError(name, "true or false")])
    return text == "true"
