"""Connections to addresses that a tenant named. Without leave of the operator none goes to a network that is not public.

A name is looked up once, every address of it must be allowed, and the connection goes to one of those very addresses:
a name server that answers differently the second time is not asked a second time. Redirects are not followed.
"""

import http.client
import ipaddress
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings

SECONDS = 5.0
LONGEST_REPLY = 64 * 1024
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Refused(Exception):
    """The address is not one that may be called."""


class Undelivered(Exception):
    """The other side could not be reached, or did not take what was sent."""


@dataclass(frozen=True)
class Place:
    """Where to connect: an address that was checked, and the name that it was found by."""

    host: str
    port: int
    address: str
    allowed_by_operator: bool


def place_find(host: str, port: int) -> Place:
    """Look `host` up and check every address of it. Raises Refused; Undelivered when there is none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Undelivered(f"{host} cannot be looked up") from error
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    by_operator = [_allowed_by_operator(address) for address in addresses]
    for address, allowed in zip(addresses, by_operator, strict=True):
        if not allowed and not is_public(address):
            raise Refused(f"{host} is not in a public network")
    return Place(host=host, port=port, address=str(addresses[0]), allowed_by_operator=all(by_operator))


def is_public(address: Address) -> bool:
    """Whether anybody on the internet could be there; an IPv4 address inside an IPv6 one counts as itself."""
    if isinstance(address, ipaddress.IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inside is not None:
            return is_public(inside)
        if address in NAT64:
            return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return address.is_global and not address.is_multicast


NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def connect(place: Place) -> socket.socket:
    """Raises Undelivered."""
    try:
        return socket.create_connection((place.address, place.port), timeout=SECONDS)
    except OSError as error:
        raise Undelivered(f"{place.host} does not answer") from error


def encrypted(raw: socket.socket, place: Place) -> ssl.SSLSocket:
    """TLS under the name, not the address. Raises Undelivered."""
    try:
        return ssl.create_default_context().wrap_socket(raw, server_hostname=place.host)
    except (OSError, ValueError) as error:
        raw.close()
        raise Undelivered(f"{place.host} has no certificate that can be trusted") from error


def post(place: Place, path: str, body: bytes, headers: Mapping[str, str], *, tls: bool) -> int:
    """POST `body`; the status of the reply. Raises Undelivered."""
    raw = connect(place)
    sock = encrypted(raw, place) if tls else raw
    client = http.client.HTTPConnection(place.host, place.port, timeout=SECONDS)
    client.sock = sock
    try:
        client.request("POST", path, body=body, headers=dict(headers))
        reply = client.getresponse()
        reply.read(LONGEST_REPLY)
        return reply.status
    except (OSError, http.client.HTTPException) as error:
        raise Undelivered(f"{place.host} broke off") from error
    finally:
        client.close()


def _allowed_by_operator(address: Address) -> bool:
    networks: Sequence[Network] = settings.MEMOS_ALLOWED_NETWORKS
    return any(address in network for network in networks if network.version == address.version)
