"""The audit log is pushed in its order, each row at least once, and goes on where it stopped; never into the inside."""

import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Callable, Iterator
from uuid import UUID

import psycopg
import pytest
from django.db import connections
from django.test import override_settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from governance.audit.reading import push, transports
from governance.audit.reading.push import push_due
from governance.audit.reading.sinks import SinkDraft, sink_create, sink_remove, sink_retry, sinks_list
from governance.audit.reading.transports import Pushed, signature, syslog_message
from governance.database import acting
from governance.errors import Forbidden, Invalid, NotFound
from governance.models import AuditEntry, AuditSink
from governance.outbound import UNREACHED, Refused, Undelivered, is_public, limit_exchange, resolve_destination
from governance.pages import First
from governance.vocabulary import Outcome, SinkKind, Verb
from tests.factories import World
from tests.governance.audit.logs import entries_make, seal_all
from tests.governance.tables import read_all_rows
from tests.harness.cases import each_case
from tests.vault.api.contract import contract, fields_at_fault

Superuser = Callable[[], psycopg.Connection]
PAUSE = "SELECT extract(epoch FROM next_at - clock_timestamp())::float FROM governance_auditsink"
SECRET = "a secret of sixteen and more"


@pytest.fixture
def inside() -> Iterator[None]:
    """The operator allows addresses of the inside, where the servers of these tests are."""
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        yield


def webhook(world: World, server: HTTPServer) -> AuditSink:
    draft = SinkDraft("hook", SinkKind.WEBHOOK, server.url_for("/trail?from=memos"), SECRET)
    return _load_sink(world, sink_create(actor=world.olivia.actor, draft=draft).id)


def _load_sink(world: World, sink_id: UUID) -> AuditSink:
    with acting(world.olivia.actor):
        return AuditSink.objects.get(id=sink_id)


def _due_now(superuser: Superuser) -> None:
    superuser().execute("UPDATE governance_auditsink SET next_at = now()")


def _lines(server: HTTPServer) -> list[dict[str, object]]:
    return [json.loads(line) for request, _ in server.log for line in request.get_data().splitlines()]


def test_a_webhook_gets_every_row_in_order_signed(world: World, httpserver: HTTPServer, inside: None) -> None:
    httpserver.expect_request("/trail", method="POST", query_string="from=memos").respond_with_data("")
    sink = webhook(world, httpserver)
    sealed = seal_all(world.acme.id)
    assert push_due() == sealed
    lines = _lines(httpserver)
    assert [line["seq"] for line in lines] == list(range(1, sealed + 1))
    assert lines[0]["entry"]["verb"] == "tenant.created"  # type: ignore[index]
    (request, _) = httpserver.log[0]
    moment, _, given = request.headers["X-Memos-Signature"].removeprefix("t=").partition(",v1=")
    expected = hmac.digest(SECRET.encode(), f"{moment}.".encode() + request.get_data(), hashlib.sha256).hex()
    assert given == expected
    assert _load_sink(world, sink.id).delivered_seq == sealed
    assert push_due() == 0


@pytest.mark.parametrize("status", [500, 404, 301])
def test_the_cursor_moves_on_only_after_delivery_and_then_it_goes_on(
    world: World, httpserver: HTTPServer, inside: None, superuser: Superuser, status: int
) -> None:
    httpserver.expect_oneshot_request("/trail").respond_with_data("", status, {"Location": "/elsewhere"})
    sink = webhook(world, httpserver)
    sealed = seal_all(world.acme.id)
    assert push_due() == 0
    failed = _load_sink(world, sink.id)
    assert (failed.delivered_seq, failed.failures) == (0, 1)
    assert str(status) in failed.last_error
    assert push_due() == 0, "it pauses"
    httpserver.expect_request("/trail").respond_with_data("")
    _due_now(superuser)
    assert push_due() == sealed
    well = _load_sink(world, sink.id)
    assert (well.delivered_seq, well.failures, well.last_error) == (sealed, 0, "")
    assert "/elsewhere" not in [request.path for request, _ in httpserver.log]


def test_rows_that_arrived_before_a_failure_come_again(
    world: World, httpserver: HTTPServer, inside: None, superuser: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "BATCH", 3)
    replies = iter([200, 500])

    def answer(request: Request) -> Response:
        return Response(status=next(replies, 200))

    httpserver.expect_request("/trail").respond_with_handler(answer)
    sink = webhook(world, httpserver)
    sealed = seal_all(world.acme.id)
    assert push_due() == 3
    assert _load_sink(world, sink.id).delivered_seq == 3
    _due_now(superuser)
    assert push_due() == sealed - 3
    seen = [int(str(line["seq"])) for line in _lines(httpserver)]
    assert seen == [1, 2, 3, 4, 5, 6, *range(4, sealed + 1)]


def test_pauses_grow_and_never_end(world: World, inside: None, superuser: Superuser) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"syslog+tcp://127.0.0.1:{closed.getsockname()[1]}"
    sink = sink_create(actor=world.olivia.actor, draft=SinkDraft("s", SinkKind.SYSLOG, address))
    seal_all(world.acme.id)
    pauses = []
    for failures in (0, 1, 2, 30):
        superuser().execute("UPDATE governance_auditsink SET next_at = now(), failures = %s", [failures])
        assert push_due() == 0
        row = superuser().execute(
            "SELECT extract(epoch FROM next_at - clock_timestamp())::float FROM governance_auditsink"
        )
        found = row.fetchone()
        assert found is not None
        pauses.append(found[0])
    for pause, seconds in zip(pauses, (2, 4, 8, 600), strict=True):
        assert seconds - 1.9 < pause <= seconds
    sink_retry(actor=world.olivia.actor, sink_id=sink.id)
    assert _load_sink(world, sink.id).failures == 0


def test_two_pushers_at_once_do_not_send_the_same_rows(world: World, httpserver: HTTPServer, inside: None) -> None:
    """While one is sending, the sink is leased; another process passes it by."""
    again: list[int] = []

    def answer(request: Request) -> Response:
        thread = threading.Thread(target=_push_elsewhere, args=(again,))
        thread.start()
        thread.join(timeout=10)
        return Response(status=200)

    httpserver.expect_request("/trail").respond_with_handler(answer)
    webhook(world, httpserver)
    sealed = seal_all(world.acme.id)
    assert push_due() == sealed
    assert again == [0]
    assert len(_lines(httpserver)) == sealed


def _push_elsewhere(taken: list[int]) -> None:
    taken.append(push_due())
    connections.close_all()


def test_syslog_over_tcp_gets_every_row_and_is_heard_out(world: World, inside: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        received: list[bytes] = []

        def receive() -> None:
            peer, _ = server.accept()
            with peer:
                received.append(_all_of(peer))

        thread = threading.Thread(target=receive)
        thread.start()
        address = f"syslog+tcp://127.0.0.1:{server.getsockname()[1]}"
        sink_create(actor=world.olivia.actor, draft=SinkDraft("s", SinkKind.SYSLOG, address))
        sealed = seal_all(world.acme.id)
        assert push_due() == sealed
        thread.join(timeout=10)
    messages = list(_split_messages(received[0]))
    assert len(messages) == sealed
    assert messages[0].startswith(b"<110>1 20")
    assert b'[memos@32473 seq="1" chain="' in messages[0]
    assert b'"verb":"tenant.created"' in messages[0]


def test_syslog_over_udp_gets_a_datagram_for_each_row(world: World, inside: None) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(5)
        address = f"syslog+udp://127.0.0.1:{server.getsockname()[1]}"
        sink_create(actor=world.olivia.actor, draft=SinkDraft("s", SinkKind.SYSLOG, address))
        sealed = seal_all(world.acme.id)
        assert push_due() == sealed
        datagrams = [server.recv(65_536) for _ in range(sealed)]
    assert all(datagram.startswith(b"<110>1 ") for datagram in datagrams)


def test_a_peer_that_goes_away_before_the_end_has_taken_nothing(world: World, inside: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reset() -> None:
            peer, _ = server.accept()
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            peer.recv(10)
            peer.close()

        thread = threading.Thread(target=reset)
        thread.start()
        address = f"syslog+tcp://127.0.0.1:{server.getsockname()[1]}"
        sink = sink_create(actor=world.olivia.actor, draft=SinkDraft("s", SinkKind.SYSLOG, address))
        entries_make(world.alice.actor, 50)
        seal_all(world.acme.id)
        assert push_due() == 0
        thread.join(timeout=10)
    assert _load_sink(world, sink.id).delivered_seq == 0


def test_a_peer_that_dribbles_does_not_hold_the_worker_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("governance.outbound.SECONDS_IN_ALL", 0.2)
    ours, theirs = socket.socketpair()
    with ours, theirs, limit_exchange(ours):
        assert ours.recv(10) == b"", "cut off, although nobody closed it"


def test_a_message_is_rfc_5424() -> None:
    message = syslog_message(Pushed(7, "ab" * 32, "2026-11-21T19:26:50.545738Z", '{"id":"中"}'))
    head, _, rest = message.partition(b" [")
    assert head == b"<110>1 2026-11-21T19:26:50.545738Z - memos - audit"
    assert rest == b'memos@32473 seq="7" chain="' + b"ab" * 32 + b'"] {"id":"\xe4\xb8\xad"}'


def test_signatures_differ_by_time_body_and_secret() -> None:
    assert signature(b"s", 1, b"x") == signature(b"s", 1, b"x")
    assert (
        len({signature(*parts) for parts in ((b"s", 1, b"x"), (b"t", 1, b"x"), (b"s", 2, b"x"), (b"s", 1, b"y"))}) == 4
    )


# Who may, and what may be set


@pytest.mark.parametrize("who", ["bob", "alice", "ada"])
def test_who_may_not_leaves_no_sink(world: World, superuser: Superuser, who: str) -> None:
    sink = sink_create(actor=world.olivia.actor, draft=_draft()).id
    before = read_all_rows(superuser())
    actor = world.person(who).actor
    for call in (
        lambda: sink_create(actor=actor, draft=_draft()),
        lambda: sink_remove(actor=actor, sink_id=sink),
        lambda: sink_retry(actor=actor, sink_id=sink),
        lambda: sinks_list(actor=actor, pages=First(1000)),
    ):
        with pytest.raises(Forbidden):
            call()
    assert read_all_rows(superuser()) == before


def test_the_other_tenant_does_not_find_it(world: World, superuser: Superuser) -> None:
    sink = sink_create(actor=world.olivia.actor, draft=_draft()).id
    before = read_all_rows(superuser())
    for call in (sink_remove, sink_retry):
        with pytest.raises(NotFound):
            call(actor=world.charlie.actor, sink_id=sink)
    assert read_all_rows(superuser()) == before
    assert sinks_list(actor=world.charlie.actor, pages=First(1000)) == []


def test_sink_secret_is_sealed_and_shown_to_nobody(world: World, superuser: Superuser) -> None:
    view = sink_create(actor=world.olivia.actor, draft=_draft())
    assert SECRET not in repr(view)
    found = superuser().execute("SELECT sealed_secret FROM governance_auditsink").fetchone()
    assert found is not None
    assert SECRET.encode() not in bytes(found[0])
    with acting(world.olivia.actor):
        row = AuditEntry.objects.get(verb=Verb.AUDIT_SINK_CREATED)
    assert row.detail == {"kind": "webhook", "host": "log.example"}
    assert row.outcome == Outcome.DONE
    sink_remove(actor=world.olivia.actor, sink_id=view.id)
    assert _load_sink(world, view.id).sealed_secret is None


@each_case(
    ("kind", "address", "secret"),
    [
        (SinkKind.WEBHOOK, "ftp://log.example", SECRET),
        (SinkKind.WEBHOOK, "https://", SECRET),
        (SinkKind.WEBHOOK, "https://user:password@log.example/", SECRET),
        (SinkKind.WEBHOOK, "https://log.example:99999/", SECRET),
        (SinkKind.WEBHOOK, "https://log.example/ x", SECRET),
        (SinkKind.WEBHOOK, "https://log.example/\r\nHost: x", SECRET),
        (SinkKind.WEBHOOK, "https://log.example/" + "x" * 500, SECRET),
        (SinkKind.WEBHOOK, "https://log.example/", "short"),
        (SinkKind.SYSLOG, "syslog://log.example", ""),
        (SinkKind.SYSLOG, "syslog+tcp://log.example:0", ""),
        (SinkKind.SYSLOG, "syslog+tcp://log.example", SECRET),
    ],
)
def test_what_is_no_address_is_refused(world: World, kind: SinkKind, address: str, secret: str) -> None:
    with pytest.raises(Invalid):
        sink_create(actor=world.olivia.actor, draft=SinkDraft("s", kind, address, secret))
    assert sinks_list(actor=world.olivia.actor, pages=First(1000)) == []


# Only public addresses


NOT_PUBLIC = [
    "127.0.0.1",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "[::1]",
    "[::]",
    "[fe80::1]",
    "[fd00::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "224.0.0.1",
    "255.255.255.255",
    "2130706433",
    "0x7f000001",
    "017700000001",
    "127.1",
]


@pytest.mark.parametrize("host", ["localhost", *NOT_PUBLIC])
def test_nothing_is_sent_to_an_address_that_is_not_public(world: World, host: str) -> None:
    """Also in the odd ways to write one: asked of the resolver, which is what would be called."""
    draft = SinkDraft("s", SinkKind.WEBHOOK, f"https://{host}:1/", SECRET)
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        sink = sink_create(actor=world.olivia.actor, draft=draft).id
    seal_all(world.acme.id)
    assert push_due() == 0
    assert _load_sink(world, sink).last_error == UNREACHED


@each_case("scheme", ["https", "syslog+tls", "syslog+tcp", "syslog+udp"])
def test_nor_is_it_saved(world: World, superuser: Superuser, scheme: str) -> None:
    kind, secret = (SinkKind.WEBHOOK, SECRET) if scheme == "https" else (SinkKind.SYSLOG, "")
    before = read_all_rows(superuser())
    for host in NOT_PUBLIC:
        with pytest.raises(Invalid) as refusal:
            sink_create(actor=world.olivia.actor, draft=SinkDraft("s", kind, f"{scheme}://{host}", secret))
        assert [fault.field for fault in refusal.value.errors] == ["address"], host
        assert refusal.value.errors[0].message.endswith("is no public address"), host
    assert read_all_rows(superuser()) == before


def test_a_webhook_without_tls_is_not_saved_unless_the_operator_allows_it(world: World) -> None:
    body = {"name": "s", "kind": "webhook", "address": "http://log.example/", "secret": SECRET}
    client = contract(world, "olivia")
    refused = client.post("audit/sinks/", body)
    assert (refused.status, fields_at_fault(refused)) == (400, {"address"})
    assert client.get("audit/sinks/").json["count"] == 0
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        assert client.post("audit/sinks/", body).status == 201


def test_a_name_that_leads_inside_is_refused_and_what_was_checked_is_what_is_called() -> None:
    with pytest.raises(Refused):
        resolve_destination("localhost", 80)
    assert resolve_destination("1.1.1.1", 443).address == "1.1.1.1"


def test_without_tls_nothing_leaves() -> None:
    with pytest.raises(Refused, match="without TLS"):
        transports.deliver(SinkKind.WEBHOOK, "http://1.1.1.1/", b"", [Pushed(1, "", "-", "null")])


def test_a_name_that_cannot_be_looked_up_is_a_failure_like_others() -> None:
    with pytest.raises((Undelivered, Refused)):
        resolve_destination("no-such-name.invalid", 443)


def test_public_is_what_anybody_may_have() -> None:
    assert is_public("93.184.216.34")
    assert is_public("2606:2800:220:1:248:1893:25c8:1946")
    assert not is_public("::ffff:10.0.0.1")


def _draft() -> SinkDraft:
    return SinkDraft("hook", SinkKind.WEBHOOK, "https://log.example/trail", SECRET)


def _all_of(peer: socket.socket) -> bytes:
    parts = []
    while part := peer.recv(65_536):
        parts.append(part)
    return b"".join(parts)


def _split_messages(stream: bytes) -> Iterator[bytes]:
    """The messages of a stream with octet counting."""
    while stream:
        length, _, stream = stream.partition(b" ")
        yield stream[: int(length)]
        stream = stream[int(length) :]
