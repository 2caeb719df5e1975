"""The HTTP transport of model servers: one checked address for each call, no redirect, no proxy of the environment."""

import ipaddress

import httpx2

from governance.outbound import Refused, Undelivered, refuse_plaintext, resolve_destination

# Names that no public name server answers for (RFC 6761, RFC 6762, RFC 8375, ICANN's .internal), beside those without
# a dot: an operator who writes one means the machine or network that the product runs in.
PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa", ".lan")


class AddressRefused(httpx2.ConnectError):
    """The host of an endpoint leads to an address that may not be called."""


class PinnedTransport(httpx2.BaseTransport):
    """Connects to the address that was checked; the name stays in TLS and in the Host header.

    A private address is called where the operator wrote one, or a name of the private network (`is_private_host`), as
    host of the endpoint. Any other name must lead to public addresses, unless MEMOS_ALLOW_PRIVATE_ADDRESSES is set.
    Of an address that a tenant wrote (not `is_of_operator`) all of them must be public, and the call goes over TLS.
    """

    def __init__(self, *, is_of_operator: bool = True) -> None:
        self._is_of_operator = is_of_operator
        self._transport = httpx2.HTTPTransport(trust_env=False)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises httpx2.ConnectError, of which AddressRefused says that nothing was connected to."""
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        try:
            if not self._is_of_operator:
                refuse_plaintext(tls=request.url.scheme == "https")
            allow_private = self._is_of_operator and is_private_host(host)
            address = resolve_destination(host, port, allow_private=allow_private).address
        except Refused as error:
            raise AddressRefused(str(error), request=request) from error
        except Undelivered as error:
            raise httpx2.ConnectError(str(error), request=request) from error
        request.extensions = {**request.extensions, "sni_hostname": host}
        request.url = request.url.copy_with(host=address)
        return self._transport.handle_request(request)

    def close(self) -> None:
        self._transport.close()


def is_private_host(host: str) -> bool:
    """Return True for a written address, a name without a dot, and a name of a private suffix."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        name = host.rstrip(".").casefold()
        return "." not in name or name.endswith(PRIVATE_SUFFIXES)
    return True
