"""Tampering shows (promise 7): whatever a superuser does to the sealed trail is found, and the first bad row named."""

import random
from collections import Counter
from collections.abc import Callable

import psycopg
import pytest

from tests.factories import World
from tests.governance.audit.tampering import WAYS
from tests.governance.audit.trails import Bender, entries_make, fault_found, seal_all, trail_make
from tests.harness.evidence import Evidence

Superuser = Callable[[], psycopg.Connection]


@pytest.fixture
def bender(world: World, superuser: Superuser) -> Bender:
    """A trail of 100 seals with several checkpoints, a copy of its first 60, and who bends it."""
    actor = world.alice.actor
    trail_make(actor, 60)
    bender = Bender(superuser(), actor.tenant_id)
    bender.keep("older")
    entries_make(actor, 40)
    seal_all(actor.tenant_id)
    bender.keep("before")
    return bender


def test_all_tampering_is_found_and_the_first_bad_row_is_named(
    bender: Bender, full_size: bool, evidence: Evidence
) -> None:
    tries = 1_000 if full_size else 100
    rng = random.Random(7)
    kept = bender.outside()
    found: Counter[str] = Counter()
    for number in range(tries):
        way = WAYS[number % len(WAYS)]
        expected = way(bender, rng)
        fault = fault_found(bender.tenant_id, kept)
        assert fault is not None, (way.__name__, expected)
        assert fault.seq == expected.seq, (way.__name__, expected, fault)
        if expected.entry_id is not None:
            assert fault.entry_id == str(expected.entry_id), (way.__name__, expected, fault)
        found[way.__name__] += 1
        bender.back_to("before")
        assert fault_found(bender.tenant_id, kept) is None
    evidence(row=7, name="tampering", figures={"tried": tries, "found": sum(found.values()), **found})
