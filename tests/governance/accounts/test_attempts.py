"""Counting tries: in Redis while it answers, else in this process; and never more of them because of many at once."""

import threading

import pytest
import redis
from django.test import override_settings

from governance.accounts.attempts import attempt_count, attempts_forget, forget_local_attempts
from governance.accounts.rules import Limits, wait_after
from governance.errors import TooManyAttempts
from tests.harness.cases import each_case

pytestmark = pytest.mark.usefixtures("database")  # the names of counters are hashed with a key of the key store
LIMITS = Limits(free=5, first_wait=30, longest_wait=3600)


@pytest.fixture(params=["redis", "no redis"])
def counter(request: pytest.FixtureRequest) -> None:
    """Both places in which tries are counted."""
    forget_local_attempts()
    if request.param == "redis":
        request.getfixturevalue("redis_address")


def _tries(count: int) -> list[bool]:
    return [attempt_count("place", "somebody") for _ in range(count)]


def test_some_tries_are_free_and_then_one_waits(counter: None) -> None:
    assert _tries(5) == [False, False, False, False, True]
    with pytest.raises(TooManyAttempts) as refusal:
        attempt_count("place", "somebody")
    assert 0 < (refusal.value.retry_after or 0) <= 30
    attempt_count("place", "somebody else")


def test_the_right_one_begins_anew(counter: None) -> None:
    _tries(4)
    attempts_forget("place", "somebody")
    assert _tries(4) == [False] * 4


def test_many_at_once_get_no_more_tries(counter: None) -> None:
    passed: list[bool] = []
    threads = [threading.Thread(target=_try_once, args=(passed,)) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == 5


def _try_once(passed: list[bool]) -> None:
    try:
        passed.append(attempt_count("place", "somebody"))
    except TooManyAttempts:
        return


def test_redis_learns_nobodys_address(redis_address: str) -> None:
    attempt_count("place", "alice@acme.example", "192.0.2.7")
    client = redis.Redis.from_url(redis_address, decode_responses=True)
    names = client.keys("*")
    client.close()
    assert names
    assert not [name for name in names if "alice" in name or "192.0.2.7" in name]


@override_settings(REDIS_ADDRESS="redis://192.0.2.1:6379/0")
def test_a_redis_that_does_not_answer_costs_little_and_once() -> None:
    import time

    forget_local_attempts()
    begin = time.monotonic()
    _tries(5)
    assert time.monotonic() - begin < 1
    with pytest.raises(TooManyAttempts):
        attempt_count("place", "somebody")


@override_settings(REDIS_ADDRESS="redis://192.0.2.1:6379/0", WEB_PROCESSES=2)
def test_each_of_several_processes_allows_its_share_without_redis() -> None:
    forget_local_attempts()
    _tries(2)
    with pytest.raises(TooManyAttempts):
        attempt_count("place", "somebody")


@each_case(("tries", "wait"), [(1, 0), (4, 0), (5, 30), (6, 60), (7, 120), (12, 3600), (10_000, 3600)])
def test_waiting_doubles_up_to_an_end(tries: int, wait: int) -> None:
    assert wait_after(tries, LIMITS) == wait


def test_redis_waits_as_long_as_the_rule_says(redis_address: str) -> None:
    _tries(5)
    client = redis.Redis.from_url(redis_address, decode_responses=True)
    lock = next(name for name in map(str, client.keys("*")) if name.endswith(":lock"))
    for tries in (6, 7, 12):
        client.set(lock.replace(":lock", ":count"), tries - 1)
        client.delete(lock)
        attempt_count("place", "somebody")
        assert client.ttl(lock) == wait_after(tries, LIMITS)
    client.close()
