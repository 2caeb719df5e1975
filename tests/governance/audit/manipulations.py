"""Attacks of a superuser on a sealed log. Each names the place of the chain where it must be found.

A forger who computes the hashes of all later seals anew leaves a chain that fits in itself. The checkpoint after the
forged row shows it, and the place that is named is the checkpoint's.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from governance.audit.lines import IN_UTC, LINE
from governance.audit.verifier import GENESIS, chain_hash, entry_hash
from governance.ids import uuid7
from tests.governance.audit.logs import SIGNED_EVERY, TABLES, Bender

ENTRY, SEAL = TABLES[0], TABLES[1]
OTHER_ID = UUID("00000000-0000-7000-8000-00000000000a")
OTHER: dict[str, Sequence[object]] = {
    "id": [OTHER_ID],
    "tenant_id": [OTHER_ID],
    "at": ["2001-01-01T00:00:00Z"],
    "created_at": ["2001-01-01T00:00:00.000001Z"],
    "principal_kind": ["forged"],
    "principal_id": [OTHER_ID],
    "member_id": [OTHER_ID],
    "verb": ["memory.purged", ""],
    "outcome": ["forged"],
    "object_type": ["memory ", "Memory"],
    "object_ids": [[OTHER_ID], [OTHER_ID, OTHER_ID]],
    "version": [77],
    "before_hash": [b"\x00", b""],
    "after_hash": [b"\xee" * 32],
    "detail": ['{"count": -1}', '{"count": "0"}'],
    "context": ['{"channel": "api"}', "[]"],
    "request_id": ["forged", "request-of-a-test "],
}
SEAL_OTHER: dict[str, object] = {
    "entry_id": OTHER_ID,
    "entry_hash": b"\x00" * 32,
    "previous_hash": b"\x01" * 32,
    "chain_hash": b"\x02" * 32,
}


@dataclass(frozen=True)
class Expected:
    """The place that must be named; for a forger who hashes anew, the first checkpoint from there on."""

    seq: int
    entry_id: UUID | None = None


Way = Callable[[Bender, random.Random], Expected]


def edit(bender: Bender, rng: random.Random) -> Expected:
    """Any column of any entry."""
    seq, entry_id = rng.choice(bender.places())
    column = rng.choice(list(OTHER))
    bender.set(ENTRY, column, rng.choice(OTHER[column]), entry_id)
    return Expected(seq, entry_id)


def edit_seal(bender: Bender, rng: random.Random) -> Expected:
    """Any column of any seal that says something."""
    seq, _ = rng.choice(bender.places())
    column = rng.choice(list(SEAL_OTHER))
    bender.set(SEAL, column, SEAL_OTHER[column], seq)
    return Expected(seq)


def edit_and_hash_anew(bender: Bender, rng: random.Random) -> Expected:
    seq = edit_text(bender, rng)
    _hash_anew(bender)
    return Expected(_find_checkpoint_from(bender, seq))


def edit_text(bender: Bender, rng: random.Random) -> int:
    seq, entry_id = rng.choice(bender.places())
    bender.set(ENTRY, "request_id", "forged", entry_id)
    return seq


def delete_entry(bender: Bender, rng: random.Random) -> Expected:
    seq, entry_id = rng.choice(bender.places())
    bender.run(f"DELETE FROM {ENTRY} WHERE id = %s", entry_id)
    return Expected(seq, entry_id)


def delete_seal(bender: Bender, rng: random.Random) -> Expected:
    """The seal with its entry, in the middle."""
    seq, entry_id = rng.choice(bender.places()[:-1])
    bender.run(f"DELETE FROM {ENTRY} WHERE id = %s", entry_id)
    bender.run(f"DELETE FROM {SEAL} WHERE tenant_id = %s AND seq = %s", bender.tenant_id, seq)
    return Expected(seq)


def delete_and_close_ranks(bender: Bender, rng: random.Random) -> Expected:
    """As before, and the later seals move up by one place."""
    expected = delete_seal(bender, rng)
    _move(bender, expected.seq, -1)
    return expected


def delete_and_hash_anew(bender: Bender, rng: random.Random) -> Expected:
    """The chain fits in itself, one seal shorter: behind the last checkpoint but one, its end is missing."""
    deleted = delete_and_close_ranks(bender, rng).seq
    _hash_anew(bender)
    last = bender.places()[-1][0]
    return Expected(min(_find_checkpoint_from(bender, deleted), last + 1))


def insert_unsealed(bender: Bender, rng: random.Random) -> Expected:
    """A forged entry in the past, without a seal."""
    places = bender.places()
    forged = _copy_of(bender, rng.choice(places)[1])
    bender.run(f"UPDATE {ENTRY} SET created_at = created_at - interval '1 day' WHERE id = %s", forged)
    return Expected(places[-1][0] + 1, forged)


def insert_sealed(bender: Bender, rng: random.Random) -> Expected:
    """A forged entry with a forged seal between two others."""
    seq, entry_id = rng.choice(bender.places())
    forged = _copy_of(bender, entry_id)
    _move(bender, seq - 1, 1)
    bender.run(
        f"INSERT INTO {SEAL} (id, tenant_id, seq, entry_id, entry_hash, previous_hash, chain_hash) "
        f"SELECT %s, tenant_id, %s, %s, sha256('x'), previous_hash, sha256('y') FROM {SEAL} "
        "WHERE tenant_id = %s AND seq = %s",
        *(uuid7(), seq, forged, bender.tenant_id, seq + 1),
    )
    return Expected(seq, forged)


def insert_and_hash_anew(bender: Bender, rng: random.Random) -> Expected:
    inserted = insert_sealed(bender, rng).seq
    _hash_anew(bender)
    return Expected(_find_checkpoint_from(bender, inserted))


def swap_entries(bender: Bender, rng: random.Random) -> Expected:
    """Two entries change what they say."""
    (first, entry), (_, other) = sorted(rng.sample(bender.places(), 2))
    for column in ("request_id", "detail", "after_hash", "verb", "version", "object_ids"):
        bender.run(
            f"UPDATE {ENTRY} AS a SET {column} = b.{column} FROM {ENTRY} AS b "
            "WHERE (a.id, b.id) IN ((%s, %s), (%s, %s))",
            *(entry, other, other, entry),
        )
    bender.set(ENTRY, "detail", '{"swapped": true}', other)  # so that two equal rows differ
    bender.set(ENTRY, "detail", '{"swapped": false}', entry)
    return Expected(first, entry)


def swap_seals(bender: Bender, rng: random.Random) -> Expected:
    """Two seals change places."""
    (first, _), (entry, _) = sorted(rng.sample(bender.places(), 2))
    for seq, to in ((first, 0), (entry, first), (0, entry)):
        bender.run(f"UPDATE {SEAL} SET seq = %s WHERE tenant_id = %s AND seq = %s", to, bender.tenant_id, seq)
    return Expected(first)


def cut_off(bender: Bender, rng: random.Random) -> Expected:
    """The newest entries and seals go, and so do the checkpoints in the database that know of them."""
    kept, _ = rng.choice(bender.places()[:-1])
    bender.run(
        f"DELETE FROM {ENTRY} WHERE id IN (SELECT entry_id FROM {SEAL} WHERE tenant_id = %s AND seq > %s)",
        *(bender.tenant_id, kept),
    )
    for table in (SEAL, TABLES[2]):
        bender.run(f"DELETE FROM {table} WHERE tenant_id = %s AND seq > %s", bender.tenant_id, kept)
    return Expected(kept + 1)


def restore_an_older_copy(bender: Bender, rng: random.Random) -> Expected:
    """Restore an older copy of the whole log, and append new entries."""
    bender.back_to("older")
    kept = bender.places()[-1][0]
    return Expected(kept + 1)


WAYS: tuple[Way, ...] = (
    edit,
    edit_seal,
    edit_and_hash_anew,
    delete_entry,
    delete_seal,
    delete_and_close_ranks,
    delete_and_hash_anew,
    insert_unsealed,
    insert_sealed,
    insert_and_hash_anew,
    swap_entries,
    swap_seals,
    cut_off,
    restore_an_older_copy,
)


def _copy_of(bender: Bender, entry_id: UUID) -> UUID:
    forged = uuid7()
    rest = (
        "tenant_id, created_at, at, principal_kind, principal_id, member_id, verb, outcome, object_type, object_ids, "
        "version, before_hash, after_hash, detail, context, request_id"
    )
    bender.run(f"INSERT INTO {ENTRY} (id, {rest}) SELECT %s, {rest} FROM {ENTRY} WHERE id = %s", forged, entry_id)
    return forged


def _move(bender: Bender, behind: int, by: int) -> None:
    """The seals behind a place move by one; in two steps, since places are unique."""
    for low, change in ((behind, 1_000_000), (1_000_000, by - 1_000_000)):
        bender.run(f"UPDATE {SEAL} SET seq = seq + %s WHERE tenant_id = %s AND seq > %s", change, bender.tenant_id, low)


def _hash_anew(bender: Bender) -> None:
    """All seals as if nothing had happened: whoever has the database can do that."""
    bender.run(IN_UTC)
    rows = bender.run(
        f"SELECT seal.seq, seal.entry_id, {LINE} FROM {SEAL} AS seal "
        f"JOIN {ENTRY} AS entry ON entry.id = seal.entry_id "
        "WHERE seal.tenant_id = %s ORDER BY seal.seq",
        bender.tenant_id,
    )
    previous, made = GENESIS, []
    for seq, entry_id, line in rows:
        sealed = entry_hash(str(line).encode())
        chained = chain_hash(int(str(seq)), str(entry_id).encode(), sealed, previous)
        made.append((seq, sealed.decode(), previous.decode(), chained.decode()))
        previous = chained
    bender.run(
        f"UPDATE {SEAL} AS seal SET entry_hash = decode(new.a, 'hex'), previous_hash = decode(new.b, 'hex'), "
        "chain_hash = decode(new.c, 'hex') FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[]) "
        "AS new (seq, a, b, c) WHERE seal.tenant_id = %s AND seal.seq = new.seq",
        *([list(column) for column in zip(*made, strict=True)]),
        bender.tenant_id,
    )


def _find_checkpoint_from(bender: Bender, seq: int) -> int:
    """The first checkpoint at or behind a place."""
    return min(checkpoint.seq for checkpoint in bender.outside() if checkpoint.seq >= seq)


__all__ = ["SIGNED_EVERY", "WAYS", "Expected", "Way"]
