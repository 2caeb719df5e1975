"""Connections to addresses that a tenant named: to public ones, unless the operator allows his own network too.

A name is looked up once, every address of it must be allowed, and the connection goes to one of those very addresses:
a name server that answers differently the second time is not asked a second time. Redirects are not followed.
"""

import http.client
import ipaddress
import os
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from django.conf import settings

SECONDS = 5.0  # for each step
SECONDS_IN_ALL = 20.0
LONGEST_REPLY = 64 * 1024
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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


def place_find(host: str, port: int, flags: int = 0) -> Place:
    """Look `host` up and check every address of it. Raises Refused; Undelivered when there is none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError) as error:
        raise Undelivered(f"{host} cannot be looked up") from error
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    if not addresses or not (settings.ALLOW_PRIVATE_ADDRESSES or all(map(is_public, addresses))):
        raise Refused(f"{host} is no public address")
    return Place(host=host, port=port, address=str(addresses[0]))


def refuse_written(host: str, port: int) -> None:
    """Raises Refused for an address, however it is written, that may not be called. A name is not looked up here."""
    with suppress(Undelivered):  # a name: where it leads is asked when it is called
        place_find(host, port, socket.AI_NUMERICHOST)


def refuse_plain(*, tls: bool) -> None:
    """Raises Refused for HTTP without TLS."""
    if not tls and not settings.ALLOW_PRIVATE_ADDRESSES:
        raise Refused("without TLS nothing is sent, unless the operator allows it")


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


class Watch:
    """Cuts a connection in time, even with one who sends a byte every few seconds. Whoever begins one ends it."""

    def __init__(self, sock: socket.socket) -> None:
        self._handle = socket.socket(fileno=os.dup(sock.fileno()))  # its own: TLS takes the socket over
        self._timer = threading.Timer(SECONDS_IN_ALL, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def _cut(self) -> None:
        with suppress(OSError):  # it has just ended
            self._handle.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        self._timer.cancel()
        self._handle.close()


@contextmanager
def hurried(sock: socket.socket) -> Iterator[None]:
    """The whole exchange ends in time."""
    watch = Watch(sock)
    try:
        yield
    finally:
        watch.end()


def post(place: Place, path: str, body: bytes, headers: Mapping[str, str], *, tls: bool) -> int:
    """POST `body`; the status of the reply. Raises Undelivered."""
    raw = connect(place)
    client = http.client.HTTPConnection(place.host, place.port, timeout=SECONDS)
    client.sock = encrypted(raw, place) if tls else raw
    try:
        with hurried(client.sock):
            client.request("POST", path, body=body, headers=dict(headers))
            reply = client.getresponse()
            reply.read(LONGEST_REPLY)
            return reply.status
    except (OSError, http.client.HTTPException) as error:
        raise Undelivered(f"{place.host} broke off") from error
    finally:
        client.close()
