"""Requests that come through a proxy: they reach the product as they were sent to its public address.

A proxy may pass the path of the address on or remove it, and may leave the port out of `Host`: both work.
"""

from collections.abc import Iterator

from django.conf import settings
from django.core.signing import BadSignature, loads
from django.urls import URLPattern, URLResolver, get_resolver
from starlette.datastructures import Headers, QueryParams
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from governance.errors import Unavailable
from memos_web.address import read_address

PROXY_CHECK = "/proxy-check/"  # answers `doctor --url` with what arrived here
CHECK_SALT, CHECK_SECONDS = "memos proxy check", 60
NOT_DJANGO = frozenset({"mcp", "mem0", "oauth", "product", "static"})  # first parts of paths beside Django's


def refuse_page_path() -> None:
    """Raise Unavailable where the address ends in a path that is one of the product's own.

    A proxy that removes the path could not be told from one that passes it on.
    """
    path = read_address(settings.PUBLIC_URL).path
    if path and path.strip("/") in {*NOT_DJANGO, *_first_parts(get_resolver())}:
        raise Unavailable(f"MEMOS_PUBLIC_URL ends with {path}, a path of the product's own: choose another")


def _first_parts(resolver: URLResolver) -> Iterator[str]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLPattern) or str(pattern.pattern):
            yield str(pattern.pattern).partition("/")[0]
        else:
            yield from _first_parts(pattern)


class AtAddress:
    """An ASGI application: requests reach `app` as they were sent to the public address, whatever a proxy did to them.

    An application gets paths that begin with `root_path`. In front of plain HTTP (no redirect to HTTPS is configured),
    a request for the public host has the scheme of the public address.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._address = read_address(settings.PUBLIC_URL)
        self._is_given = settings.PUBLIC_URL_IS_GIVEN

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = self._strip(scope)
        if path == PROXY_CHECK and _is_own_check(scope):
            await _describe(scope)(scope, receive, send)
            return
        prefix = self._address.path
        await self._app(self._restore_host({**scope, "path": prefix + path, "root_path": prefix}), receive, send)

    def _strip(self, scope: Scope) -> str:
        """The path below the address."""
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        prefix = self._address.path
        if prefix and (path == prefix or path.startswith(f"{prefix}/")):
            return path.removeprefix(prefix) or "/"
        return path

    def _restore_host(self, scope: Scope) -> Scope:
        host = Headers(scope=scope).get("host", "").lower()
        if not self._is_given or host not in {self._address.hostname, self._address.netloc}:
            return scope
        headers = [item for item in scope["headers"] if item[0] != b"host"]
        scope["headers"] = [*headers, (b"host", self._address.netloc.encode())]
        if not settings.SECURE_SSL_REDIRECT:
            scope["scheme"] = self._address.scheme
        return scope


def _is_own_check(scope: Scope) -> bool:
    token = QueryParams(scope["query_string"].decode("latin-1")).get("token", "")
    try:
        loads(token, salt=CHECK_SALT, max_age=CHECK_SECONDS)
    except BadSignature:
        return False
    return True


def _describe(scope: Scope) -> JSONResponse:
    """Return what arrived here of a request of `doctor --url`."""
    headers = Headers(scope=scope)
    names = ("host", "x-forwarded-proto", "x-forwarded-for", "authorization")
    return JSONResponse({"client": (scope.get("client") or [""])[0], **{name: headers.get(name) for name in names}})
