"""The check of `doctor --url`: asks through the proxy, and compares what arrived with what the product needs."""

import http.client
import json
from collections.abc import Iterator
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from django.conf import settings
from django.core.signing import dumps

from memos_web.address import read_address
from memos_web.management.checks import Failed, Finding
from memos_web.proxy import CHECK_SALT, PROXY_CHECK

SECONDS = 10.0
NGINX = "nginx: proxy_set_header"
Arrived = dict[str, str | None]


def check_proxy(url: str) -> Finding:
    """Certificates are those of the system, or of SSL_CERT_FILE."""
    try:
        address = url.rstrip("/")
        if address != settings.PUBLIC_URL:
            raise Failed(f"MEMOS_PUBLIC_URL is {settings.PUBLIC_URL}: set it to {address}")
        if faults := list(find_faults(_ask(address))):
            raise Failed("; ".join(faults))
    except Failed as failure:
        return Finding("proxy", False, str(failure))
    return Finding("proxy", True, f"{address} passes on what is needed")


def _ask(address: str) -> Arrived:
    """Return what arrived at the server. Raises Failed."""
    asked = Request(f"{address}{PROXY_CHECK}?token={dumps('doctor', salt=CHECK_SALT)}")
    asked.add_header("Authorization", "Bearer of-doctor")
    try:
        with build_opener(_NoRedirect).open(asked, timeout=SECONDS) as answer:
            arrived: Arrived = json.loads(answer.read())
    except HTTPError as refusal:
        with refusal:
            raise Failed(f"{address} answers {refusal.code}: its requests do not arrive at this installation") from None
    except (URLError, OSError, http.client.HTTPException) as error:
        raise Failed(f"{address} cannot be reached: {' '.join(str(error).split())}") from None
    except ValueError:
        raise Failed(f"{address} is answered by another server") from None
    return arrived


def find_faults(arrived: Arrived) -> Iterator[str]:
    """Yield what is missing, and what to do."""
    address = read_address(settings.PUBLIC_URL)
    host = (arrived["host"] or "").lower()
    if host not in {address.hostname, address.netloc}:
        yield f"Host is {host or 'missing'}, not {address.netloc}: {NGINX} Host $http_host"
    if settings.SECURE_SSL_REDIRECT and not hasattr(settings, "SECURE_PROXY_SSL_HEADER"):
        yield "X-Forwarded-Proto does not count: set MEMOS_TRUSTED_PROXY=yes"
    elif settings.SECURE_SSL_REDIRECT and arrived["x-forwarded-proto"] != "https":
        yield f"X-Forwarded-Proto is {arrived['x-forwarded-proto'] or 'missing'}: {NGINX} X-Forwarded-Proto $scheme"
    yield from _find_address_faults(arrived)
    if arrived["authorization"] is None:
        yield "Authorization is missing: API keys do not arrive"


def _find_address_faults(arrived: Arrived) -> Iterator[str]:
    senders = [sender.strip() for sender in (arrived["x-forwarded-for"] or "").split(",") if sender.strip()]
    if not senders:
        yield f"X-Forwarded-For is missing, so that all callers count as one: {NGINX} X-Forwarded-For $remote_addr"
    elif arrived["client"] not in senders:
        yield (
            f"X-Forwarded-For of {arrived['client'] or 'this proxy'} does not count: "
            "set MEMOS_TRUSTED_PROXY=yes, and FORWARDED_ALLOW_IPS to its address"
        )


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None
