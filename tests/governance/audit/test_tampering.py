"""Tampering shows (promise 7): whatever a superuser does to the sealed trail is found, and the first bad row named."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import ClassVar

import psycopg
import pytest

from governance.audit.verifier import COLUMNS, Chain, Row
from tests.factories import World
from tests.governance.audit.tampering import (
    OTHER,
    WAYS,
    Way,
    cut_off,
    delete_entry,
    edit,
    edit_and_hash_anew,
    edit_seal,
    insert_and_hash_anew,
    restore_an_older_copy,
    swap_entries,
    swap_seals,
)
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


# Mutants: a verifier with any of these holes misses what the trial above finds


class WithoutTail(Chain):
    """Does not ask whether a checkpoint knows of more."""

    def end(self) -> None:
        return


class WithoutEntries(Chain):
    """Believes the seals, and does not look at what they seal."""

    def _entry(self, row: Row) -> None:
        return


class WithoutChain(Chain):
    """Looks at each row alone."""

    def walk(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._entry(row)
            self.seq, self.hash = row.seq, row.chain_hash


class WithoutCheckpoints(Chain):
    def _compare(self) -> None:
        return


def leaving_out(column: str) -> type[Chain]:
    """A hash over all columns but one: what was sealed is taken for granted where only that column differs."""

    class LeavingOut(Chain):
        originals: ClassVar[dict[bytes, bytes]] = {}

        def _entry(self, row: Row) -> None:
            known = self.originals.setdefault(row.entry_id, row.line or b"")
            if row.line and _without(row.line, column) == _without(known, column):
                row = row._replace(line=known)
            super()._entry(row)

    return LeavingOut


def _without(line: bytes, column: str) -> dict[str, object]:
    return {name: value for name, value in json.loads(line).items() if name != column}


@pytest.mark.parametrize(
    ("mutant", "way"),
    [
        (WithoutTail, cut_off),
        (WithoutTail, restore_an_older_copy),
        (WithoutEntries, edit),
        (WithoutEntries, delete_entry),
        (WithoutEntries, swap_entries),
        (WithoutChain, edit_seal),
        (WithoutChain, swap_seals),
        (WithoutCheckpoints, edit_and_hash_anew),
        (WithoutCheckpoints, insert_and_hash_anew),
    ],
    ids=lambda one: one.__name__,
)
def test_a_verifier_with_a_hole_does_not_pass_the_trial(bender: Bender, mutant: type[Chain], way: Way) -> None:
    kept = bender.outside()
    missed = 0
    for number in range(12):
        expected = way(bender, random.Random(number))
        fault = fault_found(bender.tenant_id, kept, mutant)
        missed += fault is None or fault.seq != expected.seq
        bender.back_to("before")
    assert missed, f"{mutant.__name__} finds {way.__name__} all the same"


@pytest.mark.parametrize("column", [column for column in COLUMNS if column != "tenant_id"])
def test_a_hash_that_leaves_out_a_column_does_not_pass_the_trial(bender: Bender, column: str) -> None:
    if column == "id":
        pytest.skip("an entry with another id is another entry, whatever is hashed")
    kept, mutant = bender.outside(), leaving_out(column)
    assert fault_found(bender.tenant_id, kept, mutant) is None  # it has seen every entry
    _, entry_id = bender.places()[50]
    bender.set("governance_auditentry", column, OTHER[column][0], entry_id)
    assert fault_found(bender.tenant_id, kept) is not None
    assert fault_found(bender.tenant_id, kept, mutant) is None
