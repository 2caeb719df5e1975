"""HTTP calls to addresses that tenants named: `governance.transport` for the libraries that use `requests`."""

import io
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2
import requests
from django.conf import settings
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import get_encoding_from_headers

from governance import transport
from governance.outbound import Refused, Undelivered, unreached
from governance.transport import ENCODINGS, Limits, Transport

LIMITS = Limits()


class AddressRefused(requests.RequestException):
    """The product does not call this address."""


class AnswerTooLong(requests.ConnectionError):
    """The other side sent more than LIMITS allow."""


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
        self.headers["Accept-Encoding"] = ENCODINGS
        adapter = _TransportAdapter()
        self.mount("https://", adapter)
        self.mount("http://", adapter)

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        return super().send(request, **{**options, "allow_redirects": False, "stream": True})


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
        raise unreached(error) from error


class _TransportAdapter(BaseAdapter):
    """Sends the requests of a session by the transport, and reads each answer to its end."""

    def __init__(self) -> None:
        super().__init__()
        self._transport = Transport(LIMITS)

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        if not url_usable(request.url or ""):
            raise AddressRefused("only https:// addresses are called")
        try:
            sent = httpx2.Request(
                str(request.method), str(request.url), headers=_text_headers(request), content=_encode_body(request)
            )
            answer = self._transport.handle_request(sent)
            try:
                body = answer.read()
            finally:
                answer.close()
        except transport.AddressRefused as error:
            raise AddressRefused(str(error)) from error
        except transport.AnswerTooLong as error:
            raise AnswerTooLong(str(error)) from error
        except httpx2.InvalidURL as error:
            raise AddressRefused("the address cannot be read") from error
        except (transport.CallEnded, httpx2.RequestError) as error:
            raise requests.ConnectionError("the answer broke off, or took too long") from error
        return _make_response(request, answer, body)

    def close(self) -> None:
        self._transport.close()


def _encode_body(request: requests.PreparedRequest) -> bytes:
    body: Any = request.body or b""
    return body.encode() if isinstance(body, str) else bytes(body)


def _text_headers(request: requests.PreparedRequest) -> dict[str, str]:
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in request.headers.items()}


def _make_response(request: requests.PreparedRequest, answer: httpx2.Response, body: bytes) -> requests.Response:
    response = requests.Response()
    response.status_code = answer.status_code
    response.headers = CaseInsensitiveDict(answer.headers)
    response.encoding = get_encoding_from_headers(response.headers)
    response.raw = io.BytesIO(body)
    response.url = str(request.url)
    response.request = request
    return response
