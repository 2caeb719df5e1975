"""Each caller has places of their own at the web server: who sends many requests holds up no other."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from uuid import uuid4

import pytest
from cachetools import TTLCache
from django.conf import settings

from memos_web import callers as callers_module
from memos_web import slots as slots_module
from memos_web.callers import NOBODY, PRESENT_SECONDS, QUICK_ALONE, QUICK_EACH, TENANT, Callers
from memos_web.slots import Busy, Slot, Slots
from tests.governance.mutants import mutant

Scenario = Callable[[type[Slots]], Coroutine[None, None, str]]
TENANT_A, TENANT_B = uuid4(), uuid4()


def _scope(
    address: str = "192.0.2.1", *, key: str = "", cookie: str = "", path: str = "/api/v1/memories/"
) -> dict[str, object]:
    headers = [(b"authorization", f"Bearer {key}".encode())] if key else []
    headers += [(b"cookie", f"a=b; {settings.SESSION_COOKIE_NAME}={cookie}".encode())] if cookie else []
    return {"path": path, "headers": headers, "client": (address, 4000)}


@pytest.mark.parametrize("credential", ["key", "cookie"])
def test_valid_credential_stands_for_its_tenant_wherever_it_comes_from(credential: str) -> None:
    callers = Callers()
    callers.learn(_scope(**{credential: "one"}), TENANT_A)
    callers.learn(_scope(**{credential: "two"}), TENANT_A)
    callers.learn(_scope(**{credential: "three"}), TENANT_B)
    a = callers.caller_of(_scope("198.51.100.1", **{credential: "one"}))
    assert a == callers.caller_of(_scope(**{credential: "two"}))
    assert a != callers.caller_of(_scope(**{credential: "three"}))


def test_made_up_credentials_of_one_network_are_one_caller() -> None:
    callers = Callers()
    made_up = {callers.caller_of(_scope("2001:db8::1", key=f"mos_{number}_x")) for number in range(100)}
    made_up |= {callers.caller_of(_scope(f"2001:db8::{number}", cookie=f"{number}")) for number in range(1, 100)}
    assert len(made_up) == 1
    assert made_up != {callers.caller_of(_scope("192.0.2.1"))}
    assert callers.caller_of({"path": "/", "headers": [], "client": None}) == NOBODY


@pytest.mark.parametrize("credential", ["key", "cookie"])
def test_credential_that_was_refused_stands_for_its_network_again(credential: str) -> None:
    callers = Callers()
    for shown in ("revoked", "valid"):
        callers.learn(_scope(**{credential: shown}), TENANT_A)
    callers.forget(_scope(**{credential: "revoked"}))
    assert callers.caller_of(_scope(**{credential: "revoked"})) == callers.caller_of(_scope())
    assert callers.caller_of(_scope(**{credential: "valid"})) == f"tenant {TENANT_A}"


@pytest.mark.parametrize("mount", ["", "/memos"])
def test_authorization_header_counts_only_in_the_api(mount: str) -> None:
    callers = Callers()

    def caller(path: str, **credentials: str) -> str:
        return callers.caller_of(_scope(path=mount + path, **credentials) | {"root_path": mount})

    callers.learn(_scope(key="a"), TENANT_A)
    callers.learn(_scope(cookie="b", path="/memories/"), TENANT_B)
    assert caller("/memories/", key="a", cookie="b") == f"tenant {TENANT_B}"
    assert caller("/memories/", key="made up", cookie="b") == f"tenant {TENANT_B}"
    assert caller("/memories/", key="a") == callers.caller_of(_scope())
    assert caller("/api/v1/memories/", key="a", cookie="b") == f"tenant {TENANT_A}"
    assert caller("/api/v1/memories/", cookie="b") == f"tenant {TENANT_B}"


@pytest.mark.parametrize(("path", "is_own"), [("/healthz", True), ("/readyz", True), ("/readyz/", False), ("/", False)])
def test_health_check_waits_for_no_other_request_of_its_network(path: str, is_own: bool) -> None:
    callers = Callers()
    assert (callers.caller_of(_scope(path=path)) != callers.caller_of(_scope())) is is_own
    assert callers.caller_of(_scope("198.51.100.1", path=path)) != callers.caller_of(_scope(path=path))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time by which tenants are present."""
    now = [0.0]
    monkeypatch.setattr(callers_module, "TTLCache", partial(TTLCache, timer=lambda: now[0]))
    return now


def test_tenant_has_fewer_quick_requests_beside_another(clock: list[float]) -> None:
    callers, stranger = Callers(), "network 192.0.2.1"
    a, b = f"{TENANT}{TENANT_A}", f"{TENANT}{TENANT_B}"
    found = [callers.quick_requests(caller) for caller in (stranger, a, stranger, a, b, a)]
    assert found == [QUICK_ALONE, QUICK_ALONE, QUICK_EACH, QUICK_ALONE, QUICK_EACH, QUICK_EACH]
    clock[0] += PRESENT_SECONDS + 1
    assert [callers.quick_requests(caller) for caller in (stranger, b)] == [QUICK_ALONE, QUICK_ALONE]


async def _take_slots(slots: Slots, caller: str, most: int, quick: int = 9) -> list[Slot]:
    """Slots handed out at once, up to `most`."""
    taken: list[Slot] = []
    for _ in range(most):
        try:
            taken.append(await slots.take(caller, quick=quick))
        except Busy:
            break
    return taken


def test_caller_with_many_requests_has_few_slots_and_leaves_the_others_theirs() -> None:
    async def shares() -> list[int]:
        slots = Slots(7, each=3)
        return [
            len(await _take_slots(slots, caller, 10, quick))
            for caller, quick in (("a", 9), ("b", 2), ("c", 9), ("d", 9))
        ]

    assert asyncio.run(shares()) == [3, 2, 2, 0]


async def _order(kind: type[Slots]) -> str:
    """Return the callers in the order in which they are served; "a" came first and has most."""
    slots, served = kind(2, each=2, queue=20, seconds=10), []
    first = await slots.take("a", quick=1)

    async def request(caller: str) -> None:
        slot = await slots.take(caller, quick=1)
        served.append(caller)
        slots.give(slot)

    async with asyncio.TaskGroup() as group:
        for caller in "aaaaaabbc":
            group.create_task(request(caller))
        await asyncio.sleep(0.01)
        slots.give(first)
    return "".join(served)


def test_caller_with_many_waiting_requests_is_passed_over() -> None:
    assert asyncio.run(_order(Slots)) == "bbcaaaaaa"


def test_requests_above_a_callers_queue_are_refused_and_no_other_callers() -> None:
    async def left() -> list[bool]:
        slots = Slots(2, each=1, queue=2, seconds=10)
        held = await slots.take("a", quick=9)
        waiting = [asyncio.create_task(slots.take("a", quick=9)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await slots.take("a", quick=9)
        other = await slots.take("b", quick=9)
        slots.give(held)
        for task in waiting:
            slots.give(await task)
        slots.give(other)
        return [bool(found) for found in (slots._at_work, slots._quick, slots._waiting)]

    assert asyncio.run(left()) == [False, False, False], "nothing is remembered of callers that are gone"


def test_wait_ends_with_busy_and_leaves_no_slot_taken() -> None:
    async def count_waiting() -> int:
        slots = Slots(2, each=1, queue=5, seconds=0.01)
        held = await slots.take("a", quick=9)
        with pytest.raises(Busy):
            await slots.take("a", quick=9)
        slots.give(held)
        return len(await _take_slots(slots, "a", 2)) + len(await _take_slots(slots, "b", 2))

    assert asyncio.run(count_waiting()) == 2


def test_request_that_waits_for_a_model_leaves_its_place_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots_module, "QUICK_SECONDS", 0.0)

    async def at_work() -> list[int]:
        slots = Slots(9, each=3, queue=5, seconds=10)
        taken = [await slots.take("a", quick=1) for _ in range(3)]
        fourth = asyncio.create_task(slots.take("a", quick=1))
        await asyncio.wait([fourth], timeout=0.01)
        counts = [len(taken), fourth.done()]
        slots.give(taken[0])
        await fourth
        return [*counts, fourth.done()]

    assert asyncio.run(at_work()) == [3, False, True], "of one caller three are at work at most"


def test_slot_handed_to_a_request_that_was_just_cancelled_goes_to_the_next() -> None:
    async def handed_on() -> str:
        slots = Slots(1, each=1, queue=2, seconds=10)
        held = await slots.take("a", quick=9)
        gone, stays = (asyncio.create_task(slots.take(caller, quick=9)) for caller in "ab")
        await asyncio.sleep(0)
        slots.give(held)  # to "a", whose task has not run yet
        gone.cancel()
        return (await stays).caller

    assert asyncio.run(handed_on()) == "b"


def test_request_that_is_cancelled_while_a_slot_becomes_free_takes_none() -> None:
    async def free() -> int:
        slots = Slots(1, each=1, queue=2, seconds=10)
        held = await slots.take("a", quick=9)
        gone = asyncio.create_task(slots.take("b", quick=9))
        await asyncio.sleep(0)
        gone.cancel()
        slots.give(held)
        await asyncio.wait([gone])
        return len(await _take_slots(slots, "c", 2))

    assert asyncio.run(free()) == 1


async def _crowd(kind: type[Slots]) -> str:
    slots = kind(10, each=8)
    return "".join(slot.caller for slot in await _take_slots(slots, "a", 8, quick=2))


@pytest.mark.parametrize(
    ("scenario", "expected", "old", "new"),
    [
        (_order, "bbcaaaaaa", "and self._quick[caller] < quick", "and self._quick.total() < quick"),
        (_crowd, "aa", " and self._quick[caller] < quick", ""),
    ],
    ids=["all callers together", "any number of quick ones"],
)
def test_slots_without_a_rule_show(scenario: Scenario, expected: str, old: str, new: str) -> None:
    assert asyncio.run(scenario(Slots)) == expected
    broken = mutant(slots_module, old, new)
    broken.Busy = Busy  # type: ignore[attr-defined]  # which the scenarios catch
    assert asyncio.run(scenario(broken.Slots)) != expected
