"""Tampering shows (promise 7): what a superuser does to the sealed audit log is found, and the first bad row named."""

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import ClassVar

import psycopg
import pytest

from governance.audit.verification import Verification, log_verify, log_verify_whole
from governance.audit.verifier import COLUMNS, Broken, Chain, Checkpoint, Row
from governance.errors import Unavailable
from tests.factories import World
from tests.governance.audit.logs import Bender, entries_make, first_fault, log_make, seal_all
from tests.governance.audit.manipulations import (
    OTHER,
    OTHER_ID,
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
from tests.harness.cases import each_case
from tests.harness.evidence import Evidence

Superuser = Callable[[], psycopg.Connection]


@pytest.fixture
def bender(world: World, superuser: Superuser) -> Bender:
    """A log of 100 seals with several checkpoints, a copy of its first 60, and the attacker."""
    actor = world.alice.actor
    log_make(actor, 60)
    bender = Bender(superuser(), actor.tenant_id)
    bender.keep("older")
    entries_make(actor, 40)
    seal_all(actor.tenant_id)
    bender.keep("before")
    return bender


def test_any_tampering_is_detected_and_names_the_first_bad_row(
    bender: Bender, full_size: bool, evidence: Evidence
) -> None:
    tries = 1_000 if full_size else 100
    rng = random.Random(7)
    kept = bender.outside()
    found: Counter[str] = Counter()
    for number in range(tries):
        way = WAYS[number % len(WAYS)]
        expected = way(bender, rng)
        fault = first_fault(bender.tenant_id, kept)
        assert fault is not None, (way.__name__, expected)
        assert fault.seq == expected.seq, (way.__name__, expected, fault)
        if expected.entry_id is not None:
            assert fault.entry_id == str(expected.entry_id), (way.__name__, expected, fault)
        found[way.__name__] += 1
        bender.back_to("before")
        assert first_fault(bender.tenant_id, kept) is None
    evidence(row=7, name="tampering", figures={"tried": tries, "found": sum(found.values()), **found})


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_pieces_of_the_chain_by_several_processes_find_what_one_finds_from_end_to_end(bender: Bender, way: Way) -> None:
    kept = bender.outside()

    def verify_in_pieces() -> Verification:
        return log_verify_whole(bender.tenant_id, checkpoints=kept, processes=2, piece=30)

    before = verify_in_pieces()
    assert before == log_verify(bender.tenant_id, checkpoints=kept)
    assert before.intact
    way(bender, random.Random(11))
    assert verify_in_pieces() == log_verify(bender.tenant_id, checkpoints=kept)


@pytest.mark.parametrize("seq", [30, 31, 60])
def test_tampering_at_the_border_of_two_pieces_is_located_there(bender: Bender, seq: int) -> None:
    """Each piece begins with what the seal before it says; that seal belongs to the piece before."""
    for column, value in (("chain_hash", b"\x02" * 32), ("previous_hash", b"\x01" * 32), ("entry_id", OTHER_ID)):
        bender.set("governance_auditseal", column, value, seq)
        found = log_verify_whole(bender.tenant_id, checkpoints=[], processes=2, piece=30)
        assert (found.fault and found.fault.seq) == seq, column
        bender.back_to("before")
    bender.run("DELETE FROM governance_auditseal WHERE tenant_id = %s AND seq = %s", bender.tenant_id, seq)
    found = log_verify_whole(bender.tenant_id, checkpoints=[], processes=2, piece=30)
    assert found.fault
    assert (found.fault.seq, found.fault.reason) == (seq, "missing")


class Deadly(Checkpoint):
    """Ends the process that is given it."""

    def __reduce__(self) -> tuple[object, ...]:
        return os._exit, (9,)


def test_a_process_that_is_killed_is_neither_an_intact_nor_a_broken_audit_log(bender: Bender) -> None:
    deadly = Deadly(**vars(bender.outside()[0]))
    with pytest.raises(Unavailable):
        log_verify_whole(bender.tenant_id, checkpoints=[deadly], processes=2, piece=30)


# Mutants: a verifier with any of these holes misses what the trial above finds


class WithoutTail(Chain):
    """Does not ask whether a checkpoint knows of more."""

    def end(self) -> None:
        return


class WithoutEntries(Chain):
    """Believes the seals, and does not look at what they seal."""

    def _entry(self, row: Row) -> tuple[bytes, bytes]:
        _, entry_id, sealed, _, _ = row.seal.split(b" ")
        return entry_id, sealed


class WithoutChain(Chain):
    """Looks at each row alone."""

    def walk(self, rows: Iterable[Row]) -> None:
        for row in rows:
            place, entry_id, sealed, _, chained = row.seal.split(b" ")
            if self._entry(row) != (entry_id, sealed):
                raise Broken(int(place), entry_id, "entry_changed", "")
            self.seq, self.hash = int(place), chained


class WithoutCheckpoints(Chain):
    def _compare(self) -> None:
        return


def leaving_out(column: str) -> type[Chain]:
    """A hash over all columns but one: what was sealed is taken for granted where only that column differs."""

    class LeavingOut(Chain):
        originals: ClassVar[dict[bytes, bytes]] = {}

        def walk(self, rows: Iterable[Row]) -> None:
            super().walk(map(self._taken_for_granted, rows))

        def _taken_for_granted(self, row: Row) -> Row:
            known = self.originals.setdefault(row.seal.split(b" ")[1], row.line or b"")
            if row.line and _remove_column(row.line, column) == _remove_column(known, column):
                row = row._replace(line=known)
            return row

    return LeavingOut


def _remove_column(line: bytes, column: str) -> dict[str, object]:
    return {name: value for name, value in json.loads(line).items() if name != column}


@each_case(
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
    ids=lambda function: function.__name__,
)
def test_a_verifier_with_a_hole_does_not_pass_the_trial(bender: Bender, mutant: type[Chain], way: Way) -> None:
    kept = bender.outside()
    missed = 0
    for number in range(12):
        expected = way(bender, random.Random(number))
        fault = first_fault(bender.tenant_id, kept, mutant)
        missed += fault is None or fault.seq != expected.seq
        bender.back_to("before")
    assert missed, f"{mutant.__name__} finds {way.__name__} all the same"


@pytest.mark.parametrize(
    "column", [column for column in COLUMNS if column not in {"tenant_id", "id"}]
)  # another id: another entry
def test_a_hash_that_leaves_out_a_column_does_not_pass_the_trial(bender: Bender, column: str) -> None:
    kept, mutant = bender.outside(), leaving_out(column)
    assert first_fault(bender.tenant_id, kept, mutant) is None  # it has seen every entry
    _, entry_id = bender.places()[50]
    bender.set("governance_auditentry", column, OTHER[column][0], entry_id)
    assert first_fault(bender.tenant_id, kept) is not None
    assert first_fault(bender.tenant_id, kept, mutant) is None
