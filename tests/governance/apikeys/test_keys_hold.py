"""Tests of promise 24: keys are stored hashed, ended keys are 401, forwarded addresses are ignored, times tell nothing.

Each test has a control: code that was broken on purpose must fail the same check.
"""

import logging
import subprocess
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from random import Random
from types import ModuleType

import psycopg
import pytest
import redis
from django.db import connection
from django.test.utils import CaptureQueriesContext

from governance.actor import CallContext
from governance.errors import Unauthenticated
from governance.keys.rules import keyed_hash
from governance.models import ApiKey
from governance.tenants import selectors
from governance.vocabulary import Channel, Scope
from governance.web import sessions
from tests.factories import REQUEST_ID, World, client_for, key_for
from tests.governance.mutants import mutant
from tests.harness.databases import Clone
from tests.harness.evidence import Evidence
from tests.harness.servers import Servers

Superuser = Callable[[], psycopg.Connection]
CONTEXT = CallContext(channel=Channel.API)
ROUNDS = 6_000


# -- keys are stored hashed


def _dump(superuser: Superuser) -> str:
    """Return the content of every table, as a dump of the database has it."""
    connection = superuser()
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    rows = [connection.execute(f'SELECT t::text FROM "{name}" AS t'.encode()).fetchall() for (name,) in tables]
    return str(rows)


def _redis_content(address: str) -> str:
    client = redis.Redis.from_url(address)
    kept = [(name, client.dump(name)) for name in client.keys("*")]
    client.close()
    return str(kept)


def _forms(text: str) -> list[str]:
    """Return the forms in which a secret may be stored."""
    secret = text.rsplit("_", 1)[1]
    return [secret, secret.encode().hex(), secret[:24], secret[-24:]]


def test_no_plaintext_key_is_in_a_dump_in_redis_or_in_the_log(
    world: World, superuser: Superuser, redis_address: str, caplog: pytest.LogCaptureFixture, evidence: Evidence
) -> None:
    caplog.set_level(logging.DEBUG)
    made = world.client("olivia").post("api-keys/", {"scopes": ["chat"]}, idempotency_key="kept for a day").json
    rotated = world.client("olivia").post(f"api-keys/{made['id']}/rotate/", {}, idempotency_key="this too").json
    texts = [made["api_key"], rotated["api_key"], world.alice.key.text, key_for(world.bob, Scope.CHAT).text]
    for text in texts:
        client_for(text).get("me/")
        client_for(text + "x").get("no/such/address/")
    places = _dump(superuser) + _redis_content(redis_address) + caplog.text
    found = [form for text in texts for form in _forms(text) if form in places]
    assert found == []
    evidence(
        row=24,
        name="no-plaintext",
        figures={"keys": len(texts), "characters searched": len(places), "plaintext keys": len(found)},
    )


def test_key_stored_in_plain_text_is_detected(world: World, superuser: Superuser, redis_address: str) -> None:
    text = world.alice.key.text
    superuser().execute(
        "UPDATE governance_apikey SET secret_hash = %s WHERE id = %s", [text.encode(), world.alice.key.id]
    )
    assert any(form in _dump(superuser) for form in _forms(text))
    client = redis.Redis.from_url(redis_address)
    client.set("noted", text)
    client.close()
    assert any(form in _redis_content(redis_address) for form in _forms(text))


def test_the_database_files_hold_no_key_either(world: World, clone: Clone, servers: Servers) -> None:
    """The files of the server are searched for the bytes of the key."""
    text = key_for(world.alice, Scope.CHAT).text  # a fresh key: other tests may have left theirs in the server's log
    with clone.connect("postgres") as superuser:
        superuser.execute("CHECKPOINT")
        where = superuser.execute("SELECT pg_relation_filepath('governance_apikey')").fetchone()
    assert where is not None
    folder = servers.postgres.folder
    found = subprocess.run(
        ["grep", "-rlaF", text.rsplit("_", 1)[1], str(folder)], capture_output=True, text=True, check=False
    )
    assert found.stdout == ""
    prefix = subprocess.run(["grep", "-laF", text.split("_")[1], str(folder / where[0])], check=False)
    assert prefix.returncode == 0  # the search does find what is there


def test_the_hash_is_keyed(world: World) -> None:
    """An attacker who has the table cannot test keys."""
    from governance.database import acting
    from governance.keys.services import credential_hash

    text = world.alice.key.text
    with acting(world.olivia.actor):
        stored = bytes(ApiKey.objects.get(id=world.alice.key.id).secret_hash)
    assert stored == credential_hash(text)
    assert stored != keyed_hash(b"", text)
    assert stored != keyed_hash(bytes(32), text)


# -- ended keys are refused


def _lets_in(module: ModuleType, text: str) -> bool:
    try:
        module.actor_by_key(presented=text, request_id=REQUEST_ID, context=CONTEXT)
    except Exception as error:
        if type(error).__name__ != Unauthenticated.__name__:
            raise
        return False
    return True


ENDINGS = {
    "revoked": "UPDATE governance_apikey SET revoked_at = now()",
    "expired": "UPDATE governance_apikey SET expires_at = now()",
    "member removed": "UPDATE governance_member SET removed_at = now()",
    "person blocked": "UPDATE governance_user SET is_active = false",
}
LENIENT = {
    "revoked": ("AND key.revoked_at IS NULL", ""),
    "expired": ("(key.expires_at IS NULL OR key.expires_at > transaction_timestamp())", "true"),
    "member removed": ("member.removed_at IS NULL AND ", ""),
    "person blocked": (" AND person.is_active", ""),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_ended_key_is_refused_and_code_without_the_check_is_detected(
    world: World, superuser: Superuser, ending: str
) -> None:
    assert _lets_in(selectors, world.alice.key.text)
    superuser().execute(ENDINGS[ending].encode())
    assert not _lets_in(selectors, world.alice.key.text)
    assert client_for(world.alice.key.text).get("me/").status == 401
    assert _lets_in(mutant(selectors, *LENIENT[ending]), world.alice.key.text)


def test_code_that_does_not_compare_the_secret_is_detected(world: World) -> None:
    wrong = world.alice.key.text[:-2] + "xx"
    assert not _lets_in(selectors, wrong)
    careless = mutant(
        selectors,
        "key.secret_hash = %(digest)s",
        "%(digest)s::bytea IS NOT NULL",
        ("governance_key_by_hash(%(digest)s)", "governance_key_by_prefix(%(prefix)s)"),
        ('{"digest": digest, "nobody"', '{"prefix": prefix, "nobody"'),
    )
    assert _lets_in(careless, wrong)


def test_code_that_accepts_a_former_secret_for_too_long_is_detected(world: World, superuser: Superuser) -> None:
    superuser().execute(
        "UPDATE governance_apikey SET previous_hash = secret_hash, secret_hash = %s, previous_until = now() "
        "WHERE id = %s",
        [bytes(31) + b"x", world.alice.key.id],
    )
    assert not _lets_in(selectors, world.alice.key.text)
    careless = mutant(selectors, "key.previous_until > transaction_timestamp()", "key.previous_until IS NOT NULL")
    assert _lets_in(careless, world.alice.key.text)


# -- forwarded addresses are ignored


def test_forwarded_address_is_ignored_and_code_that_uses_it_is_detected(world: World, superuser: Superuser) -> None:
    spoofed = "203.0.113.66"
    reply = world.client("alice").post("memories/", {"content": "x"}, x_forwarded_for=spoofed, x_real_ip=spoofed)
    assert reply.status == 201
    rows = superuser().execute("SELECT context->>'address' FROM governance_auditentry").fetchall()
    assert (spoofed,) not in rows
    assert ("127.0.0.1",) in rows
    believing = mutant(sessions, '"REMOTE_ADDR"', '"HTTP_X_FORWARDED_FOR"')
    from django.test import RequestFactory

    request = RequestFactory().get("/", headers={"X-Forwarded-For": spoofed})
    assert sessions.client_address(request) == "127.0.0.1"
    assert believing.client_address(request) == spoofed


# -- times tell nothing

HASTY = (
    "    with prepared_cursor() as entering,",
    "    with prepared_cursor() as asking:\n"
    "        asking.execute('SELECT FROM governance_key_by_prefix(%s)', [prefix])\n"
    "        if asking.fetchone() is None:\n"
    "            return None\n"
    "    with prepared_cursor() as entering,",
)


def _work(module: ModuleType, text: str) -> tuple[list[str], int]:
    """Return the statements of an attempt without their values, and their number."""
    with CaptureQueriesContext(connection) as queries:
        _lets_in(module, text)
    return [query["sql"].split("(")[0][:60] for query in queries], len(queries)


def test_existing_and_missing_prefix_cost_the_same_work(world: World) -> None:
    known = world.alice.key.text[:-2] + "xx"
    unknown = known.replace(world.alice.key.prefix, "0123456789ab")
    assert _work(selectors, known) == _work(selectors, unknown)
    hasty = mutant(selectors, *HASTY)
    assert _work(hasty, known) != _work(hasty, unknown)


def auc(first: Sequence[float], second: Sequence[float]) -> float:
    """Return how well a number separates two groups: the chance that one of the first is larger, ties counted half.

    (Mann and Whitney 1947: U / (m·n).)
    """
    others = sorted(second)
    larger = sum(bisect_left(others, value) + bisect_right(others, value) for value in first) / 2
    return larger / (len(first) * len(second))


def _times(module: ModuleType, known: str, unknown: str, rounds: int) -> tuple[list[float], list[float]]:
    """Return the seconds of each attempt. Both kinds alternate in random order, so that other load affects both."""
    chance, times = Random(24), ([], [])  # type: ignore[var-annotated]
    for _ in range(rounds):
        for kind in chance.sample((0, 1), 2):
            begin = time.perf_counter()
            _lets_in(module, unknown if kind else known)
            times[kind].append(time.perf_counter() - begin)
    return times


def test_difference_between_two_samples_is_detected() -> None:
    assert auc([1, 2, 3], [1, 2, 3]) == 0.5
    assert auc([4, 5], [1, 2]) == 1.0
    assert auc([1, 1], [2, 2]) == 0.0


@pytest.mark.full
def test_existing_prefix_cannot_be_recognised_by_time(world: World, evidence: Evidence) -> None:
    """Takes many samples: with few the noise of a busy machine hides any difference."""
    known = world.alice.key.text[:-2] + "xx"
    unknown = known.replace(world.alice.key.prefix, "0123456789ab")
    _times(selectors, known, unknown, 500)
    found = auc(*_times(selectors, known, unknown, ROUNDS))
    assert abs(found - 0.5) <= 0.02
    hasty = auc(*_times(mutant(selectors, *HASTY), known, unknown, 1000))
    assert abs(hasty - 0.5) > 0.1
    evidence(
        row=24,
        name="no-clock",
        figures={"tries of each kind": ROUNDS, "AUC": round(found, 4), "AUC of the mutant": round(hasty, 4)},
    )
