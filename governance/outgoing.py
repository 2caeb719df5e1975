"""Calls that the product itself makes to addresses which people gave it: never into the operator's own network.

`governance.outbound` with the whole of HTTP, for the libraries that bring their own calls. Redirects are not followed.
"""

import socket
from typing import Any
from urllib.parse import urlsplit

import requests
from django.conf import settings
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from governance.outbound import Refused, Undelivered, Watch, place_find

TIMEOUT = (3.05, 5)  # seconds to connect, and between two bytes
LONGEST_ANSWER = 1024 * 1024


class AddressRefused(requests.RequestException):
    """The address is not one that the product calls."""


def url_usable(url: str) -> bool:
    """Whether `url` may be called at all: https, or http too where the operator allows addresses of the inside."""
    schemes = {"https", "http"} if settings.ALLOW_PRIVATE_ADDRESSES else {"https"}
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.username is None
    except ValueError:
        return False


class OutgoingSession(requests.Session):
    """A session of `requests` that calls public addresses only; to others it raises a RequestException."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False  # no proxy and no .netrc of the environment
        self.mount("https://", _PublicOnly())
        self.mount("http://", _PublicOnly())

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        return super().send(request, **{**options, "timeout": TIMEOUT, "allow_redirects": False, "stream": True})


def public_address(host: str, port: int) -> str:
    """An address of `host` to connect to. Raises AddressRefused unless every address that it has is public."""
    try:
        return place_find(host, port).address
    except (Refused, Undelivered) as error:
        raise AddressRefused(str(error)) from error


class _Pinned:
    """Connects to the address that was looked at; the name stays what TLS and the Host header say.

    A connection is for one request, and is cut off when that takes too long as a whole.
    """

    _watch: Watch | None = None

    def _new_conn(self) -> socket.socket:
        name: str = self._dns_host  # type: ignore[has-type]
        self._dns_host = public_address(name, self.port)  # type: ignore[attr-defined]
        try:
            made: socket.socket = super()._new_conn()  # type: ignore[misc]
        finally:
            self._dns_host = name
        self._watch = Watch(made)
        return made

    def close(self) -> None:
        super().close()  # type: ignore[misc]
        if self._watch is not None:
            self._watch.end()


class _PinnedHTTP(_Pinned, HTTPConnection):  # type: ignore[misc]
    pass


class _PinnedHTTPS(_Pinned, HTTPSConnection):  # type: ignore[misc]
    pass


class _PinnedHTTPPool(HTTPConnectionPool):
    ConnectionCls = _PinnedHTTP


class _PinnedHTTPSPool(HTTPSConnectionPool):
    ConnectionCls = _PinnedHTTPS


class _PublicOnly(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _PinnedHTTPPool, "https": _PinnedHTTPSPool}

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        if not url_usable(request.url or ""):
            raise AddressRefused("only https:// addresses are called")
        response: requests.Response = super().send(request, *args, **options)
        try:
            body = response.raw.read(LONGEST_ANSWER + 1, decode_content=True)
        except HTTPError as error:  # of urllib3, which its callers do not know
            raise requests.ConnectionError("the answer broke off") from error
        finally:
            response.close()
        if len(body) > LONGEST_ANSWER:
            raise AddressRefused("the answer is too long")
        response._content, response._content_consumed = body, True
        return response
