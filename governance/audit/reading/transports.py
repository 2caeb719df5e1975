"""Transports of sealed entries: a signed POST, or syslog. Each returns only after the receiver took the entries."""

import hashlib
import hmac
import socket
import time
from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple
from urllib.parse import urlsplit

from governance.audit.reading.sinks import SCHEMES
from governance.outbound import (
    Destination,
    Undelivered,
    connect,
    find_destination,
    limit_exchange,
    refuse_plaintext,
    unreached,
    wrap_tls,
)
from governance.requests_adapter import post
from governance.vocabulary import SinkKind

PRIORITY = 13 * 8 + 6  # facility "log audit", severity "informational" (RFC 5424 §6.2.1)
LONGEST_DATAGRAM = 60_000


class Pushed(NamedTuple):
    """A sealed entry to be sent; `line` is its sealed text, `at` its time in RFC 3339."""

    seq: int
    chain_hash: str
    at: str
    line: str


def deliver(kind: SinkKind, address: str, secret: bytes, rows: Sequence[Pushed]) -> None:
    """Send entries to a sink. Raises Refused; Undelivered. Some may have arrived then: all of them are sent again."""
    parts = urlsplit(address)
    if kind is SinkKind.WEBHOOK:
        refuse_plaintext(tls=parts.scheme == "https")
        _post_lines(address, secret, rows)
        return
    destination = find_destination(parts.hostname or "", parts.port or SCHEMES[kind][parts.scheme])
    if parts.scheme == "syslog+udp":
        _send_datagrams(destination, rows)
    else:
        _send_stream(destination, rows, tls=parts.scheme == "syslog+tls")


def signature(secret: bytes, moment: int, body: bytes) -> str:
    """Return the HMAC-SHA256 of `<unix time>.<body>`: the time lets the receiver refuse repeated requests."""
    digest = hmac.digest(secret, f"{moment}.".encode() + body, hashlib.sha256).hex()
    return f"t={moment},v1={digest}"


def _post_lines(address: str, secret: bytes, rows: Sequence[Pushed]) -> None:
    """POST the entries as JSON Lines; any status but 2xx is a failure, even a redirect."""
    body = "".join(f'{{"seq":{row.seq},"chain_hash":"{row.chain_hash}","entry":{row.line}}}\n' for row in rows).encode()
    headers = {
        "Content-Type": "application/x-ndjson",
        "X-Memos-Signature": signature(secret, int(time.time()), body),
        "X-Memos-First-Seq": str(rows[0].seq),
        "X-Memos-Last-Seq": str(rows[-1].seq),
    }
    status = post(address, body, headers)
    if not 200 <= status < 300:
        raise Undelivered(f"the webhook answered {status}")


def syslog_message(row: Pushed) -> bytes:
    """Return an RFC 5424 message, with the seal number as structured data, and the sealed entry as its text."""
    data = f'[memos@32473 seq="{row.seq}" chain="{row.chain_hash}"]'
    return f"<{PRIORITY}>1 {row.at} - memos - audit {data} {row.line}".encode()


def _send_stream(destination: Destination, rows: Sequence[Pushed], *, tls: bool) -> None:
    """Send with octet counting (RFC 6587 §3.4.1), close the sending side, and wait until the receiver closes too.

    Otherwise a delivery to a dead receiver would look successful: TCP accepts bytes for a peer that has died.
    """
    raw = connect(destination)
    try:
        with closing(wrap_tls(raw, destination) if tls else raw) as sock, limit_exchange(sock):
            for row in rows:
                message = syslog_message(row)
                sock.sendall(b"%d %b" % (len(message), message))
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(4096):
                pass
    except OSError as error:
        raise unreached(error) from error


def _send_datagrams(destination: Destination, rows: Sequence[Pushed]) -> None:
    """Send one datagram for each entry (RFC 5426). UDP does not confirm arrival."""
    family = socket.AF_INET6 if ":" in destination.address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            for row in rows:
                sock.sendto(syslog_message(row)[:LONGEST_DATAGRAM], (destination.address, destination.port))
    except OSError as error:
        raise unreached(error) from error
