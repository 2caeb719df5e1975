"""Callers take turns at the web server's slots: who sends many requests holds up no other."""

import asyncio
from collections.abc import Callable, Coroutine
from uuid import uuid4

import pytest
from django.conf import settings

from memos_web import slots as slots_module
from memos_web.callers import NOBODY, Callers
from memos_web.slots import CROWD_SECONDS, QUICK_SECONDS, Busy, Slot, Slots
from tests.attacks.clocks import Clock
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


async def _order(kind: type[Slots]) -> str:
    slots, served = kind(1, queue=20, seconds=10, clock=Clock()), []
    first = await slots.take("a")

    async def request(caller: str) -> None:
        slot = await slots.take(caller)
        served.append(caller)
        slots.give(slot)

    async with asyncio.TaskGroup() as group:
        for caller in "aaaaaabbc":
            group.create_task(request(caller))
        await asyncio.sleep(0)
        slots.give(first)
    return "".join(served)


def test_waiting_callers_take_turns_however_many_requests_one_has() -> None:
    assert asyncio.run(_order(Slots)) == "abcabaaaa"


def test_full_queue_drops_the_last_of_who_waits_with_most() -> None:
    async def waiting() -> object:
        slots = Slots(1, queue=4, seconds=10, clock=Clock())
        held = await slots.take("a")
        tasks = [asyncio.create_task(slots.take("a")) for _ in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await slots.take("a")
        tasks.append(asyncio.create_task(slots.take("b")))
        await asyncio.sleep(0)
        (dropped,) = await asyncio.gather(tasks[3], return_exceptions=True)
        slots.give(held)
        assert (await tasks[0]).caller == "a"
        slots.give(await tasks[0])
        assert (await tasks[4]).caller == "b"
        for task in tasks[1:3]:
            task.cancel()
        return dropped

    dropped = asyncio.run(waiting())
    assert isinstance(dropped, Busy)


async def _take_slots(slots: Slots, caller: str, most: int) -> list[Slot]:
    """Slots handed out at once, up to `most`."""
    taken: list[Slot] = []
    for _ in range(most):
        try:
            taken.append(await slots.take(caller))
        except Busy:
            break
    return taken


def test_single_caller_has_its_share_and_few_slots_while_another_is_there() -> None:
    async def shares() -> list[int]:
        clock = Clock()
        slots = Slots(10, each=8, crowded=2, clock=clock)
        alone = await _take_slots(slots, "a", 10)
        counts = [len(alone), len(await _take_slots(slots, "b", 10))]
        for slot in alone:
            slots.give(slot)
        crowded = await _take_slots(slots, "a", 10)
        counts.append(len(crowded))
        clock.now += QUICK_SECONDS
        slow = await _take_slots(slots, "a", 10)  # what waits for a model takes no processor
        counts.append(len(slow))
        for slot in crowded + slow:
            slots.give(slot)
        clock.now += CROWD_SECONDS + 1
        counts.append(len(await _take_slots(slots, "a", 10)))
        return counts

    assert asyncio.run(shares()) == [8, 2, 2, 2, 8]


async def _beside_check(kind: type[Slots], path: str = "/readyz") -> str:
    """Return the share of "a" beside a health check that arrives over the network, loads, runs and waits."""
    clock = Clock()
    slots, check = (
        kind(10, each=8, crowded=2, queue=5, clock=clock),
        Callers().caller_of(_scope("127.0.0.1", path=path)),
    )
    held = await _take_slots(slots, check, 1)
    clock.now += QUICK_SECONDS
    slots.give(held.pop())
    await _take_slots(slots, check, 1)
    return "".join(slot.caller for slot in await _take_slots(slots, "a", 10))


@pytest.mark.parametrize(("path", "most"), [("/healthz", 8), ("/readyz", 8), ("/readyz/", 2), ("/", 2)])
def test_health_check_address_makes_no_crowd_and_others_do(path: str, most: int) -> None:
    assert asyncio.run(_beside_check(Slots, path)) == most * "a"


def test_health_checks_in_number_take_turns_like_any_caller() -> None:
    async def share() -> int:
        slots = Slots(10, each=8, crowded=2, clock=Clock())
        await _take_slots(slots, "a", 1)
        return len(await _take_slots(slots, Callers().caller_of(_scope(path="/healthz", key="k")), 8))

    assert asyncio.run(share()) == 2


async def _stranger(kind: type[Slots], seconds: float = 0.1, name: str = "stranger") -> str:
    """Return the share of "a" after another caller's requests, one each four seconds, of so many seconds each."""
    clock = Clock()
    slots = kind(10, each=8, crowded=2, clock=clock)
    for _ in range(5):
        clock.now += 4 - seconds
        slot = await slots.take(name)
        clock.now += seconds
        slots.give(slot)
    return "".join(slot.caller for slot in await _take_slots(slots, "a", 8))


def test_light_request_of_a_stranger_now_and_then_makes_no_crowd() -> None:
    assert asyncio.run(_stranger(Slots)) == 8 * "a"


def test_tenant_that_asks_now_and_then_is_a_crowd_between_its_requests() -> None:
    assert asyncio.run(_stranger(Slots, name="tenant b")) == 2 * "a"


def test_stranger_that_loads_a_processor_is_a_crowd_between_its_requests() -> None:
    assert asyncio.run(_stranger(Slots, 0.4)) == 2 * "a"


def test_caller_that_waits_is_a_crowd_though_it_has_used_nothing() -> None:
    async def begun() -> str:
        slots = Slots(2, crowded=1, queue=5, seconds=10, clock=Clock())
        held = await _take_slots(slots, "a", 2)
        waiting = [asyncio.create_task(slots.take(caller)) for caller in "aab"]
        await asyncio.sleep(0)
        for slot in held:
            slots.give(slot)
        await asyncio.sleep(0)
        done = sorted(task.result().caller for task in waiting if task.done())
        for task in waiting:
            task.cancel()
        return "".join(done)

    assert asyncio.run(begun()) == "ab"


def test_slot_handed_to_a_request_that_was_just_cancelled_goes_to_the_next() -> None:
    async def handed_on() -> str:
        slots = Slots(1, queue=2, seconds=10, clock=Clock())
        held = await slots.take("a")
        gone, stays = (asyncio.create_task(slots.take(caller)) for caller in "ab")
        await asyncio.sleep(0)
        slots.give(held)  # to "a", whose task has not run yet
        gone.cancel()
        return (await stays).caller

    assert asyncio.run(handed_on()) == "b"


async def _beside(kind: type[Slots]) -> str:
    """Return the order of "a", which has used much, and "b", which has used little, beside and after a request of b."""
    clock = Clock()
    slots = kind(10, queue=5, seconds=10, clock=clock)
    slots.give(await slots.take("b"))
    for _ in range(5):
        much = await slots.take("a")
        clock.now += 0.5
        slots.give(much)
    little = await slots.take("b")
    waiting = [asyncio.create_task(slots.take(caller)) for caller in "aab"]
    await asyncio.sleep(0)
    begun = [task.result().caller for task in waiting if task.done()]
    slots.give(little)
    slots.give(await waiting[2])
    await asyncio.sleep(0)
    begun += [task.result().caller for task in waiting[:2] if task.done()]
    return "".join(begun)


def test_who_has_used_much_begins_nothing_beside_who_has_used_little() -> None:
    assert asyncio.run(_beside(Slots)) == "baa"


async def _crowd(kind: type[Slots]) -> str:
    slots = kind(10, each=8, crowded=2, clock=Clock())
    await _take_slots(slots, "b", 1)
    return "".join(slot.caller for slot in await _take_slots(slots, "a", 8))


@pytest.mark.parametrize(
    ("scenario", "expected", "old", "new"),
    [
        (_order, "abcabaaaa", "key=self._use, default=None", "key=lambda one: -len(self._waiting[one]), default=None"),
        (
            _order,
            "abcabaaaa",
            "self._waiting[caller] = queue  #",
            "self._waiting = OrderedDict({caller: queue, **self._waiting})  #",
        ),
        (_beside, "baa", "use > MUCH * self._use(one)", "False"),
        (_crowd, "aa", "not self._is_crowded(caller)", "True"),
        (_beside_check, "aaaaaaaa", " and not one.startswith(CHECK)", ""),
        (_stranger, "aaaaaaaa", "chain(self._at_work, self._waiting, loading)", "self._seen"),
    ],
    ids=[
        "the longest queue first",
        "the same caller again",
        "beside who has used little",
        "no crowd",
        "a check is a crowd",
        "whoever was seen",
    ],
)
def test_slots_without_a_rule_show(scenario: Scenario, expected: str, old: str, new: str) -> None:
    assert asyncio.run(scenario(Slots)) == expected
    broken = mutant(slots_module, old, new)
    broken.Busy = Busy  # type: ignore[attr-defined]  # which the scenarios catch
    assert asyncio.run(scenario(broken.Slots)) != expected
