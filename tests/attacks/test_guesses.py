"""Guessing of passwords and API keys: bounded from one network and from many, and nobody is locked out for good."""

import re
from collections.abc import Callable

import psycopg
import pytest
import redis
from django.conf import settings
from django.test import Client, override_settings

from governance.accounts.attempts import COUNTED_FOR, CountedHere, address_group
from governance.accounts.key_refusals import key_refusals_write
from governance.accounts.rules import Limits
from tests.factories import API, World
from tests.governance.accounts.people import (
    PASSWORD,
    browser,
    find_entries,
    find_mailed_link,
    give_password,
    is_in,
    sign_in,
)
from tests.governance.filled_tenants import drain
from tests.harness.cases import each_case

Superuser = Callable[[], psycopg.Connection]
FREE_BY_ACCOUNT = 20


def _client_at(address: str) -> Client:
    client = browser()
    client.defaults["REMOTE_ADDR"] = address
    return client


def _try(client: Client, email: str, password: str = "wrong") -> int:
    return client.post("/sign-in/", {"email": email, "password": password}).status_code


@pytest.fixture(params=["redis", "no redis"])
def counter(request: pytest.FixtureRequest) -> None:
    """Both places in which tries are counted."""
    if request.param == "redis":
        request.getfixturevalue("redis_address")


@override_settings(ATTEMPTS_FREE_BY_ADDRESS=3)
def test_successful_sign_ins_do_not_count_against_an_address(world: World, counter: None) -> None:
    give_password(world.alice)
    assert [_try(browser(), world.alice.email, PASSWORD) for _ in range(8)] == [303] * 8
    assert [_try(browser(), f"{n}@acme.example") for n in range(4)] == [422] * 3 + [429]


@override_settings(ATTEMPTS_FREE_BY_ADDRESS=3)
def test_addresses_of_one_ipv6_network_are_one_address(world: World, counter: None) -> None:
    tries = [_try(_client_at(f"2001:db8:1:2::{n:x}"), f"{n}@acme.example") for n in range(1, 5)]
    assert tries == [422] * 3 + [429]
    assert _try(_client_at("2001:db8:1:3::1"), "somebody@acme.example") == 422


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("", ""),
        ("unix:", "unix:"),
    ],
)
def test_address_is_grouped_as_one_subscriber_has_it(address: str, group: str) -> None:
    assert address_group(address) == group


def _guess_from_everywhere(email: str) -> list[int]:
    return [_try(_client_at(f"198.51.{n}.9"), email) for n in range(FREE_BY_ACCOUNT + 1)]


@each_case("email", ["alice@acme.example", "nobody@acme.example"])
def test_guesses_from_many_addresses_are_counted_for_the_account(world: World, counter: None, email: str) -> None:
    assert _guess_from_everywhere(email) == [422] * FREE_BY_ACCOUNT + [429]


def test_trusted_browser_gets_in_while_others_guess(world: World, counter: None) -> None:
    give_password(world.alice)
    own = sign_in(world.alice.email)
    own.post("/sign-out/")
    assert _guess_from_everywhere(world.alice.email)[-1] == 429
    assert _try(browser(), world.alice.email, PASSWORD) == 429
    assert is_in(sign_in(world.alice.email, client=own))


def test_trusted_browser_guesses_no_more_than_others_and_is_trusted_for_its_person_only(
    world: World, counter: None
) -> None:
    give_password(world.alice)
    own = sign_in(world.alice.email)
    own.post("/sign-out/")
    assert [_try(own, world.alice.email) for _ in range(6)] == [422] * 5 + [429]
    assert _guess_from_everywhere(world.bob.email)[-1] == 429
    assert _try(own, world.bob.email) == 429
    forged = browser()
    name = f"memos_browser_{settings.INSTALLATION_TAG}"
    forged.cookies[name] = own.cookies[name].value[:-1] + "x"
    _guess_from_everywhere(world.alice.email)
    assert _try(forged, world.alice.email, PASSWORD) == 429


def test_mailed_link_gets_in_while_others_guess(world: World, counter: None) -> None:
    give_password(world.alice)
    assert _guess_from_everywhere(world.alice.email)[-1] == 429
    browser().post("/sign-in/~/forgotten/", {"email": world.alice.email})
    drain()
    client = browser()
    assert client.post(find_mailed_link(world.alice.email), {"new": "another heron at dusk"}).status_code == 303
    assert is_in(client)


def test_count_lives_for_a_day_and_a_pause_for_an_hour_at_most() -> None:
    now = [0.0]
    here, limits = CountedHere(clock=lambda: now[0]), Limits(free=2, first_wait=30, longest_wait=3600)
    pauses = []
    assert here.attempt("alice", limits) == -1
    for _ in range(12):
        assert here.attempt("alice", limits) < 0
        pauses.append(here.attempt("alice", limits))
        now[0] += pauses[-1]
    assert (pauses[:4], max(pauses)) == ([30, 60, 120, 240], 3600)
    now[0] = COUNTED_FOR + 1
    assert here.attempt("alice", limits) == -1


def test_count_in_redis_lives_for_a_day_from_the_first_try(world: World, redis_address: str) -> None:
    client = redis.Redis.from_url(redis_address, decode_responses=True)
    _try(browser(), world.alice.email)
    names = list(map(str, client.keys("memos:attempts:*:count")))
    for name in names:
        client.expire(name, 1000)
    _try(browser(), world.alice.email)
    assert len(names) == 3
    assert all(0 < int(client.ttl(name)) <= 1000 for name in names)
    client.close()


# -- API keys


def _me(key: str, address: str = "192.0.2.7") -> int:
    headers = {"Authorization": f"Bearer {key}"}
    return Client(REMOTE_ADDR=address, headers=headers).get(f"{API}me/").status_code


def _wrong(key: str, number: int) -> str:
    return f"{key[:-4]}{number:04d}"


def test_wrong_secrets_are_limited_by_prefix_and_address(world: World, counter: None) -> None:
    key, unknown = world.alice.key.text, "mos_0123456789ab_" + "x" * 43
    for presented in (key, unknown):
        assert [_me(_wrong(presented, n)) for n in range(11)] == [401] * 10 + [429]
    assert _me(_wrong(key, 1), "198.51.100.1") == 401
    assert _me(_wrong(world.bob.key.text, 1)) == 401
    assert _me(key) == 200, "wrong secrets of others lock no holder out"


@override_settings(ATTEMPTS_FREE_BY_ADDRESS=5)
def test_one_address_that_tries_many_prefixes_is_limited(world: World, counter: None) -> None:
    statuses = [_me(f"mos_{n:012x}_{'x' * 43}") for n in range(6)]
    assert statuses == [401] * 5 + [429]
    assert _me(world.alice.key.text) == 200


def test_wrong_secrets_are_recorded_once_a_while_in_their_tenant(
    world: World, superuser: Superuser, redis_address: str
) -> None:
    key = world.alice.key.text
    for n in range(40):
        _me(_wrong(key, n))
    _me(_wrong(key, 1), "2001:db8::1")
    _me("mos_0123456789ab_" + "x" * 43)
    _me("nonsense")
    assert find_entries(superuser, "apikey.refused") == [], (
        "a request writes nothing: a prefix that exists takes no longer"
    )
    assert key_refusals_write() == 1
    prefix = world.alice.key.prefix
    assert find_entries(superuser, "apikey.refused") == [
        {"prefix": prefix, "tries": 11, "addresses": 2, "address": "192.0.2.7"}
    ]
    rows = superuser().execute(
        "SELECT tenant_id, object_ids, outcome FROM governance_auditentry WHERE verb = 'apikey.refused'"
    )
    assert rows.fetchall() == [(world.acme.id, [world.alice.key.id], "denied")]
    assert key_refusals_write() == 0
    assert not re.search(key.rsplit("_", 1)[1][:20], str(redis.Redis.from_url(redis_address).keys("*")))
