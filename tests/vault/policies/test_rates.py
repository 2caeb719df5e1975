"""Requests per minute: 429 with the time to wait, counted in Redis, and in the process where Redis is dead or hangs."""

import socket
import time
from pathlib import Path

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from governance.policies.rates import Rates
from tests.factories import World
from tests.vault.api.contract import Contract, contract
from tests.vault.policies.test_quotas import set_quota

MINUTE = 60


def ask_repeatedly(client: Contract, times: int) -> list[int]:
    return [client.get("me/").status for _ in range(times)]


@pytest.mark.parametrize("kind", ["tenant", "member", "api_key"])
def test_more_requests_than_a_minute_has_are_refused(
    redis_address: str, olivia: Contract, alice: Contract, kind: str
) -> None:
    set_quota(olivia, kind, requests_per_minute=3)
    statuses = ask_repeatedly(alice, 8)
    assert statuses.count(200) in {3, 6}  # 6: a minute began meanwhile
    refused = next(reply for reply in (alice.get("me/") for _ in range(8)) if reply.status == 429)
    assert refused.code == "quota_exceeded"
    assert 1 <= int(refused.headers["Retry-After"]) <= MINUTE + 1


def test_members_are_counted_apart_and_the_tenant_together(
    redis_address: str, world: World, olivia: Contract, alice: Contract, bob: Contract
) -> None:
    set_quota(olivia, "member", world.alice.member.id, requests_per_minute=1)
    assert ask_repeatedly(alice, 4).count(200) in {1, 2}
    assert ask_repeatedly(bob, 4).count(200) == 4
    set_quota(olivia, "tenant", requests_per_minute=0)
    assert ask_repeatedly(bob, 2) == [429, 429]


def test_another_tenant_is_not_slowed(redis_address: str, olivia: Contract, charlie: Contract) -> None:
    set_quota(olivia, requests_per_minute=0)
    assert ask_repeatedly(charlie, 3) == [200, 200, 200]


def test_a_bad_key_is_401_before_it_is_counted(redis_address: str, olivia: Contract) -> None:
    set_quota(olivia, requests_per_minute=0)
    assert Contract(key="mos_nobody_x").get("me/").status == 401


def test_with_redis_dead_it_still_limits(olivia: Contract, alice: Contract) -> None:
    set_quota(olivia, requests_per_minute=3)  # the settings of the tests name a Redis that is not there
    assert ask_repeatedly(alice, 8).count(200) in {3, 6}


def test_with_redis_hanging_it_still_limits_and_waits_no_longer_than_it_says(
    tmp_path: Path, olivia: Contract, alice: Contract
) -> None:
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(str(tmp_path / "redis.sock"))
        hanging.listen(50)
        with override_settings(REDIS_ADDRESS=f"unix://{tmp_path}/redis.sock?db=0"):
            set_quota(olivia, requests_per_minute=5)
            started = time.monotonic()
            statuses = ask_repeatedly(alice, 12)
            waited = time.monotonic() - started
    assert 5 <= statuses.count(200) <= 10, "five in each of one or two minutes"
    assert waited < 3.0  # one wait of 0.2 s, not twelve


def test_redis_counts_for_all_processes_together(redis_address: str) -> None:
    first, other = Rates(redis_address, 0.2), Rates(redis_address, 0.2)
    assert [first.count(["a", "b"], 7), other.count(["a"], 7), first.count(["a"], 8)] == [[1, 1], [2], [1]]


def test_a_process_counts_each_minute_anew() -> None:
    here = Rates("unix:///nonexistent/redis.sock?db=0", 0.2)
    assert [here.count(["a"], 7), here.count(["a"], 7), here.count(["a"], 8)] == [[1], [2], [1]]


def test_without_a_quota_a_request_costs_nothing_more(world: World) -> None:
    """Finding the key's holder tells already that the tenant has no policy."""
    client = contract(world, "alice")
    client.get("me/")
    with CaptureQueriesContext(connection) as captured:
        client.get("me/")
    said = [query["sql"] for query in captured.captured_queries]
    assert not [item for item in said if "governance_policy" in item or "governance_usage" in item]
