"""The request log of an API key: noted after each answer, written by the clock, bounded, read by few."""

from collections.abc import Callable
from datetime import UTC, datetime

import psycopg
import pytest
from django.test import override_settings

from governance.apikeys.request_log import UNLOGGED, key_requests_tidy, key_requests_write, note_key_request
from governance.apikeys.requests import key_days_list, key_requests_list
from governance.apikeys.rules import BOUNDS, bucket_of, percentile_of
from governance.errors import Forbidden, NotFound
from governance.pages import First
from governance.vocabulary import Scope
from tests.factories import World, client_for, key_for

pytestmark = pytest.mark.usefixtures("redis_address")
Superuser = Callable[[], psycopg.Connection]
DOWN = "unix:///nonexistent/redis.sock?db=0"


def note(world: World, *, milliseconds: int = 7, status: int = 200) -> None:
    note_key_request(
        tenant_id=world.acme.id,
        key_id=world.alice.key.id,
        method="GET",
        route="api/v1/me/",
        status=status,
        seconds=milliseconds / 1000,
    )


def test_answered_requests_of_a_key_are_logged_without_ids_queries_and_content(
    world: World, superuser: Superuser
) -> None:
    client = client_for(world.alice.key.text)
    memory = client.post("memories/", {"content": "The heron nests by the weir."}).json["results"][0]["id"]
    assert client.get(f"memories/{memory}/").status == 200
    assert client.get("memories/?q=heron&page_size=bad").status == 400
    assert client_for(world.bob.key.text).post("memories/", {"content": "heron"}).status == 403
    assert client_for(f"{world.alice.key.text}x").get("me/").status == 401  # nobody's
    assert key_requests_write() == 4
    rows = key_requests_list(actor=world.alice.actor, key_id=world.alice.key.id, pages=First(9))
    assert [(row.method, row.route, row.status) for row in rows] == [
        ("GET", "api/v1/memories/", 400),
        ("GET", "api/v1/memories/<uuid:memory_id>/", 200),
        ("POST", "api/v1/memories/", 201),
    ]
    assert all(0 <= row.milliseconds < 10_000 for row in rows)
    stored = superuser().execute("SELECT request::text FROM governance_apikeyrequest AS request").fetchall()
    assert "heron" not in str(stored)
    assert memory not in str(stored)


def test_log_is_readable_only_for_managers_of_keys_and_its_member(world: World) -> None:
    note(world)
    key_requests_write()
    key = world.alice.key.id
    narrow = client_for(key_for(world.alice, Scope.MEMORIES_READ).text)
    for client in (world.client("olivia"), world.client("alice")):
        page = client.get(f"api-keys/{key}/requests/").json
        assert (page["count"], page["results"][0]["route"]) == (1, "api/v1/me/")
    assert narrow.get(f"api-keys/{key}/requests/").status == 403  # another key of hers
    assert world.client("bob").get(f"api-keys/{key}/requests/").status == 403
    assert world.client("charlie").get(f"api-keys/{key}/requests/").status == 404
    for refused, error in ((world.bob, Forbidden), (world.charlie, NotFound)):
        with pytest.raises(error):
            key_days_list(actor=refused.actor, key_id=key, days=7)


def test_days_count_requests_errors_and_estimate_latencies(world: World) -> None:
    for milliseconds in (4, 4, 4, 4, 4, 4, 4, 4, 4, 180):
        note(world, milliseconds=milliseconds)
    key_requests_write()
    note(world, milliseconds=180, status=500)
    key_requests_write()  # adds to the same day
    days = key_days_list(actor=world.alice.actor, key_id=world.alice.key.id, days=30)
    assert len(days) == 30
    assert (days[-1].day, days[-1].requests, days[-1].errors) == (datetime.now(UTC).date(), 11, 1)
    assert 3 < days[-1].p50 <= 5
    assert 150 < days[-1].p95 <= 200
    assert (days[0].requests, days[0].p95) == (0, 0)


def test_percentiles_of_buckets_are_within_their_bounds() -> None:
    assert [bucket_of(milliseconds) for milliseconds in (0, 1, 2, 30_000, 30_001)] == [
        0,
        0,
        1,
        len(BOUNDS) - 1,
        len(BOUNDS),
    ]
    assert percentile_of([0] * (len(BOUNDS) + 1), 0.95) == 0
    assert percentile_of([*[0] * len(BOUNDS), 3], 0.5) == BOUNDS[-1]
    assert percentile_of([10, 0, 0, 10], 0.5) == 1


def test_old_and_surplus_rows_are_removed(world: World, superuser: Superuser) -> None:
    for status in range(200, 206):
        note(world, status=status)
    with override_settings(KEY_REQUESTS_MOST=4):
        key_requests_write()
    rows = key_requests_list(actor=world.alice.actor, key_id=world.alice.key.id, pages=First(9))
    assert [row.status for row in rows] == [205, 204, 203, 202]
    note(world)
    with override_settings(KEY_REQUESTS_MOST_OF_TENANT=2):
        key_requests_write()
    assert key_requests_tidy() == 0
    superuser().execute("UPDATE governance_apikeyrequest SET at = at - interval '8 days' WHERE status = 205")
    superuser().execute("UPDATE governance_apikeyday SET day = day - 91")
    assert key_requests_tidy() == 2
    rows = key_requests_list(actor=world.alice.actor, key_id=world.alice.key.id, pages=First(9))
    assert [row.status for row in rows] == [200]
    assert key_days_list(actor=world.alice.actor, key_id=world.alice.key.id, days=100)[-1].requests == 0


@override_settings(REDIS_ADDRESS=DOWN)
def test_requests_without_redis_are_answered_and_counted_as_unlogged(world: World) -> None:
    before = UNLOGGED._value.get()
    assert client_for(world.alice.key.text).get("me/").status == 200
    assert UNLOGGED._value.get() == before + 1
    assert key_requests_write() == 0


def test_notes_return_to_redis_if_the_database_refuses_them(world: World, superuser: Superuser) -> None:
    note(world)
    superuser().execute("REVOKE INSERT ON governance_apikeyrequest FROM memos_app")
    with pytest.raises(Exception, match="permission denied"):
        key_requests_write()
    superuser().execute("GRANT INSERT ON governance_apikeyrequest TO memos_app")
    assert key_requests_write() == 1


def test_notes_of_an_unknown_key_are_dropped(world: World) -> None:
    note_key_request(
        tenant_id=world.acme.id,
        key_id=world.charlie.key.id,
        method="GET",
        route="x",
        status=200,
        seconds=0,
    )
    note(world)
    assert key_requests_write() == 1
