"""Addresses that the product may connect to: public ones, unless the operator allows the private network too.

A name is looked up once, every address found must be allowed, and the connection goes to one of these very addresses,
so that a second answer of the name server changes nothing. Redirects are not followed.
"""

import ipaddress
import logging
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from django.conf import settings

logger = logging.getLogger(__name__)

SECONDS = 5.0  # for each step
SECONDS_IN_ALL = 20.0

# IANA's special-purpose registries (RFC 6890, as of 2026-10) and multicast. Every block that they list is refused, also
# those that are globally reachable: none of them is a server that a tenant would name.
SPECIAL_IPV4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this network (RFC 791)
            "10.0.0.0/8",  # private use (RFC 1918)
            "100.64.0.0/10",  # shared address space of providers (RFC 6598)
            "127.0.0.0/8",  # loopback (RFC 1122)
            "169.254.0.0/16",  # link local, metadata services of clouds (RFC 3927)
            "172.16.0.0/12",  # private use
            "192.0.0.0/24",  # IETF protocol assignments (RFC 6890)
            "192.0.2.0/24",  # documentation (RFC 5737)
            "192.31.196.0/24",  # AS112 (RFC 7535)
            "192.52.193.0/24",  # AMT (RFC 7450)
            "192.88.99.0/24",  # 6to4 relays, deprecated (RFC 7526)
            "192.168.0.0/16",  # private use
            "192.175.48.0/24",  # AS112 (RFC 7534)
            "198.18.0.0/15",  # benchmarking (RFC 2544)
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast (RFC 5771)
            "240.0.0.0/4",  # reserved, and the limited broadcast (RFC 1112, RFC 8190)
        ),
    )
)
GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # RFC 4291: all else of IPv6 is refused, whatever becomes of it
SPECIAL_IPV6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # IETF protocol assignments: Teredo, benchmarking, ORCHID, DRIP (RFC 2928)
            "2001:db8::/32",  # documentation (RFC 3849)
            "2002::/16",  # 6to4 (RFC 3056, RFC 7526)
            "2620:4f:8000::/48",  # AS112 (RFC 7534)
            "3fff::/20",  # documentation (RFC 9637)
        ),
    )
)
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the way to IPv4 from a network without


# The one sentence for every server that was not reached. Which of its reasons it was would tell the names, addresses
# and open ports of the operator's network to those who name servers; the log has it.
UNREACHED = "the server cannot be reached, may not be called, or broke off"


class Refused(Exception):
    """The address is not one that may be called."""


class Undelivered(Exception):
    """The other side could not be reached, or did not take what was sent."""


@dataclass(frozen=True)
class Destination:
    """`address` was checked and is connected to; `host` is the name that TLS and the Host header use."""

    host: str
    port: int
    address: str


def resolve_destination(host: str, port: int, flags: int = 0, *, allow_private: bool = False) -> Destination:
    """Look `host` up and check every address of it. Raises Refused; Undelivered when there is none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError) as error:
        raise Undelivered(f"{host} cannot be looked up") from error
    addresses = [str(entry[4][0]) for entry in found]
    may_be_private = allow_private or settings.ALLOW_PRIVATE_ADDRESSES
    if not addresses or not (may_be_private or all(is_public(address) for address in addresses)):
        raise Refused(f"{host} is no public address")
    return Destination(host=host, port=port, address=addresses[0])


def find_destination(host: str, port: int) -> Destination:
    """Look up a host that a tenant named. Raises Undelivered, with the reason only in the log."""
    try:
        return resolve_destination(host, port)
    except (Refused, Undelivered) as error:
        raise unreached(error) from error


def unreached(error: Exception) -> Undelivered:
    """Return the error for a server that was not reached, after the log was told the reason."""
    logger.warning("a server was not reached: %s", error)
    return Undelivered(UNREACHED)


def refuse_private_literal(host: str, port: int) -> None:
    """Raises Refused for an address, however it is written, that may not be called. A name is not looked up here."""
    with suppress(Undelivered):  # a name: its addresses are checked when it is called
        resolve_destination(host, port, socket.AI_NUMERICHOST)


def refuse_plaintext(*, tls: bool) -> None:
    """Raises Refused for HTTP without TLS."""
    if not tls and not settings.ALLOW_PRIVATE_ADDRESSES:
        raise Refused("without TLS nothing is sent, unless the operator allows it")


def is_public(address: str) -> bool:
    """True for an address of the public internet. One that carries an IPv4 address counts as that one.

    `address`: as getaddrinfo writes it; with a zone (fe80::1%eth0) it is of a local network.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv4Address):
        return not any(parsed in block for block in SPECIAL_IPV4)
    if parsed.ipv4_mapped is not None:
        return is_public(str(parsed.ipv4_mapped))
    if parsed in NAT64:
        return is_public(str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)))
    return parsed in GLOBAL_UNICAST and parsed.scope_id is None and not any(parsed in block for block in SPECIAL_IPV6)


def connect(destination: Destination) -> socket.socket:
    """Connect to a checked destination. Raises Undelivered."""
    try:
        return socket.create_connection((destination.address, destination.port), timeout=SECONDS)
    except OSError as error:
        raise unreached(error) from error


def wrap_tls(raw: socket.socket, destination: Destination) -> ssl.SSLSocket:
    """Wrap `raw` in TLS for the name, not the address. Raises Undelivered."""
    try:
        return ssl.create_default_context().wrap_socket(raw, server_hostname=destination.host)
    except (OSError, ValueError) as error:
        raw.close()
        raise Undelivered(f"{destination.host} has no certificate that can be trusted") from error


class ExchangeTimer:
    """Cuts a connection after SECONDS_IN_ALL, even from a peer that sends a byte every few seconds; `end` it."""

    def __init__(self, sock: socket.socket) -> None:
        self.is_over = False
        self._handle = socket.socket(fileno=os.dup(sock.fileno()))  # its own: TLS takes the socket over
        self._timer = threading.Timer(SECONDS_IN_ALL, self._cut_connection)
        self._timer.daemon = True
        self._timer.start()

    def _cut_connection(self) -> None:
        self.is_over = True
        with suppress(OSError):  # it has just ended
            self._handle.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        self._timer.cancel()
        self._handle.close()


@contextmanager
def limit_exchange(sock: socket.socket) -> Iterator[None]:
    """End the whole exchange after SECONDS_IN_ALL."""
    timer = ExchangeTimer(sock)
    try:
        yield
    finally:
        timer.end()
