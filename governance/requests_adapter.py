"""HTTP calls to addresses that tenants entered: `governance.outbound` for libraries that use `requests`."""

import io
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

import requests
from django.conf import settings
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from governance.outbound import ExchangeTimer, Refused, Undelivered, resolve_destination

TIMEOUT = (3.05, 5)  # seconds to connect, and between two bytes
LONGEST_ANSWER = 1024 * 1024


class AddressRefused(requests.RequestException):
    """The product does not call this address."""


class AnswerTooLong(requests.ConnectionError):
    """The reply had more than LONGEST_ANSWER bytes."""


def url_usable(url: str) -> bool:
    """Return whether a URL has https, or http if the operator allows private addresses, and no user name."""
    schemes = {"https", "http"} if settings.ALLOW_PRIVATE_ADDRESSES else {"https"}
    try:
        parts = urlsplit(url)
        return parts.scheme in schemes and bool(parts.hostname) and parts.username is None
    except ValueError:
        return False


class OutgoingSession(requests.Session):
    """A session that calls public addresses only, follows no redirect, and limits the time and length of replies.

    Raises: requests.RequestException; its subclass AddressRefused means that no connection was opened.
    """

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False  # no proxy and no .netrc of the environment
        self.mount("https://", _PinnedAdapter())
        self.mount("http://", _PinnedAdapter())

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        return super().send(request, **{**options, "timeout": TIMEOUT, "allow_redirects": False, "stream": True})


def post(address: str, body: bytes, headers: Mapping[str, str]) -> int:
    """POST `body` to an address that a tenant entered, and return the status. Raises Refused; Undelivered."""
    try:
        with OutgoingSession() as session:
            return session.post(address, data=body, headers=dict(headers)).status_code
    except AddressRefused as error:
        raise Refused(str(error)) from error
    except AnswerTooLong as error:
        raise Undelivered(str(error)) from error
    except requests.RequestException as error:
        raise Undelivered(f"{urlsplit(address).hostname} cannot be reached, or broke off") from error


def public_address(host: str, port: int) -> str:
    """Return the IP address of `host` to connect to. Raises AddressRefused unless all its addresses are allowed."""
    try:
        return resolve_destination(host, port).address
    except (Refused, Undelivered) as error:
        raise AddressRefused(str(error)) from error


_TIMERS: ContextVar[list[ExchangeTimer]] = ContextVar("timers of the request that is being sent")


class _Timed:
    """A connection that is cut when its whole request takes too long, even if it is closed to further requests."""

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        _TIMERS.get().append(ExchangeTimer(self.sock))  # type: ignore[attr-defined]


class _TimedHTTP(_Timed, HTTPConnection):
    pass


class _TimedHTTPS(_Timed, HTTPSConnection):
    pass


class _TimedHTTPPool(HTTPConnectionPool):
    ConnectionCls = _TimedHTTP


class _TimedHTTPSPool(HTTPSConnectionPool):
    ConnectionCls = _TimedHTTPS


class _PinnedAdapter(HTTPAdapter):
    """Connects to the IP address that was checked; TLS and the Host header keep the host name."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _TimedHTTPPool, "https": _TimedHTTPSPool}

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, *args: Any, **options: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        host_params, pool_options = super().build_connection_pool_key_attributes(request, *args, **options)
        parts = urlsplit(request.url or "")
        host = parts.hostname or ""
        tls = parts.scheme == "https"
        address = public_address(host, parts.port or (443 if tls else 80))
        request.headers = CaseInsensitiveDict({**request.headers, "Host": parts.netloc})
        if tls:
            pool_options |= {"assert_hostname": host, "server_hostname": host}
        return {**host_params, "host": address}, pool_options

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        if not url_usable(request.url or ""):
            raise AddressRefused("only https:// addresses are called")
        token = _TIMERS.set([])
        try:
            response: requests.Response = super().send(request, *args, **options)
            body = _read_body(response)
            if any(timer.is_over for timer in _TIMERS.get()):  # without a length, a cut looks like the end
                raise requests.ConnectionError("the answer took too long")
            response.raw = io.BytesIO(body)
        finally:
            self._end_connections()
            _TIMERS.reset(token)
        return response

    def _end_connections(self) -> None:
        """Close the connections after each request, because a second one would have no timer."""
        for timer in _TIMERS.get():
            timer.end()
        self.poolmanager.clear()


def _read_body(response: requests.Response) -> bytes:
    try:
        body: bytes = response.raw.read(LONGEST_ANSWER + 1, decode_content=True)
    except HTTPError as error:  # of urllib3, which callers of requests do not expect
        raise requests.ConnectionError("the answer broke off") from error
    finally:
        response.close()
    if len(body) > LONGEST_ANSWER:
        raise AnswerTooLong("the answer is too long")
    return body
