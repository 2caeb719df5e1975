"""Each bound, taken away on purpose, shows: what holds for the product does not hold for its mutant."""

import asyncio
from collections.abc import Callable
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest

from benchmarks.hostile_texts import processor_seconds
from governance.accounts import attempts
from governance.audit.reading import push
from governance.errors import TooLarge
from governance.privacy.pii import secrets
from memos_web import bodies, callers
from memos_web.slots import Busy
from tests.governance.mutants import mutant

KIB = 1024
BEGIN = "-----BEGIN PRIVATE KEY-----"
A, B = UUID(int=1), UUID(int=2)


def _reads_a_body_in_chunks(module: ModuleType) -> bool:
    """Return whether 1 MiB is read from somebody who may send 64 KiB."""
    parts = iter(range(16))

    async def receive() -> dict[str, Any]:
        number = next(parts)
        return {"type": "http.request", "body": b" " * 64 * KIB, "more_body": number < 15}

    async def limit() -> int:
        return 64 * KIB

    try:
        asyncio.run(module.read_body({"headers": []}, receive, limit, lambda _: None))
    except TooLarge:
        return False
    return True


def _holds_all_bodies_of_one_caller(module: ModuleType) -> bool:
    held = module.HeldBodies(100)
    try:
        held.hold("a", 80)
    except Busy:
        return False
    return True


def _counts_addresses_of_one_subscriber_apart(module: ModuleType) -> bool:
    return bool(module.address_group("2001:db8::1") != module.address_group("2001:db8::2"))


def _counts_made_up_credentials_apart(module: ModuleType) -> bool:
    known = module.Callers()
    sender = {"path": "/api/v1/memories/", "client": ("192.0.2.1", 1)}
    scopes = [sender | {"headers": [(b"authorization", key)]} for key in (b"a", b"b")]
    return len({known.caller_of(scope) for scope in scopes}) > 1


def _serves_all_sinks_of_one_tenant_first(module: ModuleType) -> bool:
    due = [(UUID(int=number), A) for number in range(3)] + [(UUID(int=9), B)]
    return bool(module.interleave_tenants(due)[1][1] == A)


def _searches_the_end_of_a_key_again_and_again(module: ModuleType) -> bool:
    """Return whether a text eight times as long takes more than twenty times as long."""

    def seconds(length: int) -> float:
        text = (BEGIN * (length // len(BEGIN) + 1))[:length]
        return min(processor_seconds(lambda text: list(module.secrets(text)), text) for _ in range(3))

    return seconds(64_000) > 20 * seconds(8_000)


BROKEN: list[tuple[Callable[[ModuleType], bool], ModuleType, str, str]] = [
    (
        _reads_a_body_in_chunks,
        bodies,
        "limit, is_asked = await limit_of_caller(), True",
        "limit, is_asked = 10**9, True",
    ),
    (_holds_all_bodies_of_one_caller, bodies, "self._most // 2", "self._most"),
    (_counts_addresses_of_one_subscriber_apart, attempts, "IPV6_PREFIX = 64", "IPV6_PREFIX = 128"),
    (
        _counts_made_up_credentials_apart,
        callers,
        "return self._tenants.get(self._digest(scope), network)",
        "return self._digest(scope).hex()",
    ),
    (_serves_all_sinks_of_one_tenant_first, push, "before[tenant_id] += 1", "before[tenant_id] += 0"),
    (
        _searches_the_end_of_a_key_again_and_again,
        secrets,
        "if self._found is not None and self._found.start() < place:",
        "if True:",
    ),
]


@pytest.mark.parametrize(("falls", "module", "old", "new"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_bound_that_is_taken_away_shows(
    falls: Callable[[ModuleType], bool], module: ModuleType, old: str, new: str
) -> None:
    assert not falls(module)
    assert falls(mutant(module, old, new))
