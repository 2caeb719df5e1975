"""No address that a tenant names makes the product connect to anything but the public internet (row 19).

An audit hook of the interpreter sees each connection before it is made, and refuses it: nothing leaves this machine.
Names are answered by a resolver of the test; what is written as a number is read by the real one.
"""

import ipaddress
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
import requests
from django.test import override_settings
from pytest_httpserver import HTTPServer
from werkzeug import Response

from governance import outbound, requests_adapter, transport
from governance.audit.reading import transports
from governance.audit.reading.transports import Pushed, deliver
from governance.errors import DomainError
from governance.outbound import Refused, Undelivered
from governance.requests_adapter import OutgoingSession
from governance.vocabulary import SinkKind
from tests.harness.cases import each_case
from tests.harness.evidence import Evidence
from vault.exchange.sync import client
from vault.exchange.sync.client import PeerClient
from vault.providers import openai_endpoint
from vault.providers.openai_endpoint import Endpoint
from vault.providers.openai_llm import OpenAiLlm
from vault.providers.ports import ChatMessage, ChatRole, ProviderUnavailable
from vault.providers.reranker_endpoint import EndpointReranker

# IANA's registries of special-purpose addresses and what else is no unicast of the internet, apart from the product's.
BLOCKS = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "::1/128", "::/128", "::/96",
    "::ffff:0:0:0/96", "::ffff:127.0.0.0/104", "::ffff:10.0.0.0/104", "::ffff:169.254.0.0/112",
    "64:ff9b::127.0.0.0/104", "64:ff9b::169.254.0.0/112", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23",
    "2001::/32", "2001:2::/48", "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16",
    "2620:4f:8000::/48", "3fff::/20", "4000::/3", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
]  # fmt: skip
SPELLINGS = [
    "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "0000177.0.0.1",
    "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "10.1", "3232235777", "0", "[::]", "[0:0:0:0:0:ffff:7f00:1]",
    "[::127.0.0.1]", "[::ffff:0:127.0.0.1]", "[fe80::1%25lo]", "localhost", "LOCALHOST", "localhost.",
]  # fmt: skip
PUBLIC = [
    "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "128.0.0.1", "172.15.255.255", "172.32.0.1",
    "192.167.255.255", "198.17.255.255", "198.20.0.1", "223.255.255.255", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
    "2000::1", "2001:200::1", "2003::1", "2606:4700:4700::1111", "3ffe:ffff::1",
]  # fmt: skip
ROW = [Pushed(1, "ab", "-", "null")]
FIRST_PUBLIC = "93.184.216.34"
REFUSALS = (requests.RequestException, Refused, Undelivered, ProviderUnavailable)


class Connections:
    """Addresses that something tried to connect or send to while `watch` was on; none of them was reached."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self._on = False
        sys.addaudithook(self._hook)

    def _hook(self, event: str, details: tuple[Any, ...]) -> None:
        if self._on and event in {"socket.connect", "socket.sendto"} and isinstance(details[1], tuple):
            self.tried.append(details[1][0])
            raise ConnectionRefusedError("refused by the test")

    @contextmanager
    def watch(self) -> Iterator[list[str]]:
        self.tried, self._on = [], True
        try:
            yield self.tried
        finally:
            self._on = False


CONNECTIONS = Connections()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Answers of the name server: each lookup of a name takes the next one, and the last one stays."""
    answers: dict[str, list[str]] = {}
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        given = answers.get(host)
        if given is None:
            return real(host, *args, **options)
        return real(given.pop(0) if len(given) > 1 else given[0], *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


def get(host: str) -> None:
    with OutgoingSession() as session:
        session.get(f"https://{host}/.well-known/openid-configuration")


def post(host: str) -> None:
    with OutgoingSession() as session:
        session.post(f"https://{host}:8443/token", data={"code": "x"})


def webhook(host: str) -> None:
    deliver(SinkKind.WEBHOOK, f"https://{host}/trail", b"secret", ROW)


def syslog_tls(host: str) -> None:
    deliver(SinkKind.SYSLOG, f"syslog+tls://{host}:6514", b"", ROW)


def syslog_tcp(host: str) -> None:
    deliver(SinkKind.SYSLOG, f"syslog+tcp://{host}:601", b"", ROW)


def syslog_udp(host: str) -> None:
    deliver(SinkKind.SYSLOG, f"syslog+udp://{host}:514", b"", ROW)


@cache  # loading the certificates of the world takes longer than a call
def _llm(host: str) -> OpenAiLlm:
    return OpenAiLlm(Endpoint(url=f"https://{host}/v1", key="k", model="m", retries=0))


@cache
def _tenant_llm(host: str) -> OpenAiLlm:
    endpoint = Endpoint(url=f"https://{host}/v1", key="k", model="m", retries=0, is_of_operator=False)
    return OpenAiLlm(endpoint)


@cache
def _reranker(host: str) -> EndpointReranker:
    return EndpointReranker(Endpoint(url=f"http://{host}/v1", key="k", model="m", retries=0))


def model(host: str) -> None:
    _llm(host).complete([ChatMessage(ChatRole.USER, "x")])


def tenant_model(host: str) -> None:
    _tenant_llm(host).complete([ChatMessage(ChatRole.USER, "x")])


def reranker(host: str) -> None:
    _reranker(host).score("x", ["y"])


CALLS: dict[str, Callable[[str], None]] = {
    "sign-in server": get, "its tokens": post, "webhook": webhook, "syslog+tls": syslog_tls, "syslog+tcp": syslog_tcp,
    "syslog+udp": syslog_udp, "model": model, "reranker": reranker, "a tenant's model": tenant_model,
}  # fmt: skip
OPERATORS = {"model", "reranker"}  # addresses that the operator writes, so a private one is called as written


def special_addresses() -> list[str]:
    """First, last and one from the middle of each block."""
    blocks = [ipaddress.ip_network(block) for block in BLOCKS]
    return sorted({str(block[at]) for block in blocks for at in (0, -1, block.num_addresses // 3)})


def attempts(calls: dict[str, Callable[[str], None]], host: str) -> list[str]:
    """Addresses that any of the calls tried to connect to; each call must have failed."""
    tried = []
    for name, call in calls.items():
        with CONNECTIONS.watch() as seen:
            with pytest.raises(REFUSALS):
                call(host)
            tried += [f"{name} -> {address}" for address in seen]
    return tried


def by_number() -> tuple[int, list[str]]:
    """Every written form of a special address, in each call whose address a tenant names."""
    tenants = {name: call for name, call in CALLS.items() if name not in OPERATORS}
    hosts = [_write_address(address) for address in special_addresses()] + SPELLINGS
    return len(hosts) * len(tenants), [found for host in hosts for found in attempts(tenants, host)]


def by_name(names: dict[str, list[str]]) -> tuple[int, list[str]]:
    """A name that leads to each special address, alone and behind a public one."""
    calls = {
        name: CALLS[name]
        for name in ("sign-in server", "webhook", "syslog+tcp", "model", "reranker", "a tenant's model")
    }
    found, tried = [], 0
    for address in special_addresses():
        names["inside.example.com"] = [address]
        found += attempts(calls, "inside.example.com")
        tried += len(calls)
    return tried, found


def by_rebinding(names: dict[str, list[str]]) -> tuple[int, list[str]]:
    """A name that is public when it is checked and leads inside from the second lookup on."""
    found, tried = [], 0
    for inside in ("127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "fec0::1", "64:ff9b:1::1", "::ffff:10.0.0.1"):
        for name, call in CALLS.items():
            names["rebinding.example.com"] = [FIRST_PUBLIC, inside]
            tried_addresses = attempts({name: call}, "rebinding.example.com")
            found += [each for each in tried_addresses if not each.endswith(f"-> {FIRST_PUBLIC}")]
            tried += 1
            assert tried_addresses, f"{name} did not even try the address that was checked"
    return tried, found


def test_no_address_makes_the_product_connect_inside(names: dict[str, list[str]], evidence: Evidence) -> None:
    numbers, inside = by_number()
    leading, inside_by_name = by_name(names)
    rebound, inside_by_rebinding = by_rebinding(names)
    assert inside + inside_by_name + inside_by_rebinding == []
    addresses = len(special_addresses()) + len(SPELLINGS)
    assert addresses >= 120
    figures = {
        "special addresses and spellings": addresses,
        "calls by number": numbers,
        "calls by name": leading,
        "calls by a name that is rebound": rebound,
        "connections to an address that is not public": 0,
    }
    evidence(row=19, name="no-ssrf", figures=figures)


def test_a_name_with_one_private_address_among_public_ones_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*_: Any, **__: Any) -> Any:
        return [(socket.AF_INET, 1, 6, "", (address, 443)) for address in (FIRST_PUBLIC, "10.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(Refused):
        outbound.resolve_destination("mixed.example.com", 443)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_beside_a_special_block_is_called(address: str) -> None:
    host = _write_address(address)
    tried = attempts({"webhook": webhook, "sign-in server": get, "syslog+tcp": syslog_tcp}, host)
    called = {ipaddress.ip_address(each.split(" -> ")[1]) for each in tried}
    assert called == {ipaddress.ip_address(address)}


def test_redirects_are_not_followed(httpserver: HTTPServer) -> None:
    """Neither to the inside nor anywhere: also where the operator allows private addresses."""
    target = httpserver.url_for("/inside")
    for status in (301, 302, 303, 307, 308):
        for path in (f"/{status}", f"/{status}/v1/chat/completions", f"/{status}/v1/rerank"):
            httpserver.expect_request(path).respond_with_response(Response("", status, {"Location": target}))
        with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
            with OutgoingSession() as session:
                assert session.get(httpserver.url_for(f"/{status}")).status_code == status
            with pytest.raises(Undelivered, match=f"answered {status}"):
                deliver(SinkKind.WEBHOOK, httpserver.url_for(f"/{status}"), b"secret", ROW)
        endpoint = Endpoint(url=httpserver.url_for(f"/{status}/v1"), key="k", model="m", retries=0)
        with pytest.raises(ProviderUnavailable, match=f"status {status}"):
            OpenAiLlm(endpoint).complete([ChatMessage(ChatRole.USER, "x")])
    assert "/inside" not in {request.path for request, _ in httpserver.log}


def test_a_model_is_called_at_the_private_address_that_the_operator_wrote(names: dict[str, list[str]]) -> None:
    for host, address in {"10.1.2.3": "10.1.2.3", "ollama": "172.18.0.5", "gpu.internal": "10.0.0.9"}.items():
        names[host] = [address]
        assert attempts({"model": model}, host) == [f"model -> {address}"]


def test_the_model_of_a_tenant_is_called_over_tls_only(names: dict[str, list[str]]) -> None:
    names["llm.example.com"] = [FIRST_PUBLIC]
    plain = OpenAiLlm(Endpoint(url="http://llm.example.com/v1", key="k", model="m", retries=0, is_of_operator=False))
    with CONNECTIONS.watch() as tried, pytest.raises(ProviderUnavailable):
        plain.complete([ChatMessage(ChatRole.USER, "x")])
    assert tried == []
    assert attempts({"model": tenant_model}, "llm.example.com") == [f"model -> {FIRST_PUBLIC}"]


def test_a_refused_model_tells_the_setting(names: dict[str, list[str]]) -> None:
    names["llm.example.com"] = ["10.0.0.1"]
    with pytest.raises(ProviderUnavailable, match="see MEMOS_ALLOW_PRIVATE_ADDRESSES"):
        model("llm.example.com")
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        assert attempts({"model": model}, "llm.example.com") == ["model -> 10.0.0.1"]


def sync_peer(host: str) -> None:
    PeerClient(f"https://{host}", "/team", "k").list_memories(None)


SHOWN = {
    "webhook": webhook,
    "syslog+tls": syslog_tls,
    "syslog+tcp": syslog_tcp,
    "syslog+udp": syslog_udp,
    "a tenant's model": tenant_model,
    "other installation": sync_peer,
}  # calls whose failure a tenant is shown


def sentences(monkeypatch: pytest.MonkeyPatch, names: dict[str, list[str]], call: Callable[[str], None]) -> set[str]:
    """Return the messages about a name without an address, of one inside, of a closed port, and of a port inside."""
    host = "intranet.example.com"
    answering = socket.getaddrinfo
    told = set()
    for addresses, may_be_private in (
        ((), False),
        (("10.0.0.1",), False),
        ((FIRST_PUBLIC,), False),
        (("10.0.0.1",), True),
    ):

        def getaddrinfo(name: Any, *args: Any, found: tuple[str, ...] = addresses, **options: Any) -> Any:
            if name == host and not found:
                raise socket.gaierror("unknown")
            return answering(name, *args, **options)

        names[host] = list(addresses)
        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        with (
            override_settings(ALLOW_PRIVATE_ADDRESSES=may_be_private),
            CONNECTIONS.watch(),
            pytest.raises((Refused, Undelivered, DomainError)) as failure,
        ):
            call(host)
        told.add(f"{getattr(failure.value, 'code', '')} {failure.value}")
    return told


@each_case("name", list(SHOWN))
def test_a_server_that_is_not_reached_does_not_tell_why(
    monkeypatch: pytest.MonkeyPatch, names: dict[str, list[str]], caplog: pytest.LogCaptureFixture, name: str
) -> None:
    assert len(sentences(monkeypatch, names, SHOWN[name])) == 1
    assert "intranet.example.com is no public address" in caplog.text, "the operator's log tells it"


# Broken on purpose


@each_case("name", list(SHOWN))
def test_an_error_that_tells_why_shows(monkeypatch: pytest.MonkeyPatch, names: dict[str, list[str]], name: str) -> None:
    for module in (outbound, transport, requests_adapter, transports):
        monkeypatch.setattr(module, "unreached", lambda error: Undelivered(str(error)), raising=False)
    monkeypatch.setattr(openai_endpoint, "_describe_failure", str)
    monkeypatch.setattr(client, "Refused", (Refused, requests_adapter.AddressRefused))
    assert len(sentences(monkeypatch, names, SHOWN[name])) > 1


@each_case("block", [str(block) for block in (*outbound.SPECIAL_IPV4, *outbound.SPECIAL_IPV6)])
def test_a_block_that_is_left_out_shows(monkeypatch: pytest.MonkeyPatch, block: str) -> None:
    """The address that shows lies in no other block of the list."""
    for name in ("SPECIAL_IPV4", "SPECIAL_IPV6"):
        kept = tuple(each for each in getattr(outbound, name) if str(each) != block)
        monkeypatch.setattr(outbound, name, kept)
    inside = [_write_address(address) for address in special_addresses() if _is_in(address, block)]
    assert any(attempts({"syslog+tcp": syslog_tcp}, host) for host in inside)


def test_the_addresses_that_an_old_python_calls_global_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound, "is_public", lambda address: ipaddress.ip_address(address).is_global)
    calls, inside = by_number()
    assert len(inside) > calls / 100


def test_a_session_that_looks_a_name_up_twice_shows(names: dict[str, list[str]]) -> None:
    def twice(host: str) -> None:
        outbound.resolve_destination(host, 443)
        requests.get(f"https://{host}/", timeout=1)

    names["rebinding.example.com"] = [FIRST_PUBLIC, "10.0.0.1"]
    assert attempts({"twice": twice}, "rebinding.example.com") == ["twice -> 10.0.0.1"]


def _is_in(address: str, block: str) -> bool:
    parsed, network = ipaddress.ip_address(address), ipaddress.ip_network(block)
    return parsed.version == network.version and parsed in network


def _write_address(address: str) -> str:
    return f"[{address}]" if ":" in address else address
