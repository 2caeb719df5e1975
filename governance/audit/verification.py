"""Verification of a tenant's audit log in the database, against its seals and its signed checkpoints."""

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, replace
from multiprocessing import get_context
from uuid import UUID

from django.db import connection

from governance.audit.checkpoints import public_key
from governance.audit.lines import IN_UTC, LINE
from governance.audit.verifier import (
    GENESIS,
    Broken,
    Chain,
    Checkpoint,
    Fault,
    PublicKey,
    Row,
    Unreadable,
    checkpoint_read,
    is_signed,
)
from governance.database import tenant_transaction
from governance.errors import Unavailable
from governance.models import AuditCheckpoint, AuditSeal
from governance.replica import replica_reads

SEALED_WITHIN = 60.0  # seconds; an entry that waits longer for its seal is reported
PIECE = 50_000  # seals for which it pays to start another process
AT_ONCE = 64  # seals in one message: a message for each would cost us a third more
MISSING_ENTRY = b"null"  # what stands for an entry that a seal has lost
ROWS = f"""
COPY (SELECT (
  SELECT convert_to(string_agg(concat(text, E'\\t', place), E'\\n'), 'UTF8') FROM (
    SELECT CASE WHEN entry.id IS NOT NULL THEN {LINE} ELSE 'null' END AS text,
      concat_ws(' ', seal.seq, seal.entry_id, encode(seal.entry_hash, 'hex'), encode(seal.previous_hash, 'hex'),
        encode(seal.chain_hash, 'hex')) AS place
    FROM governance_auditseal AS seal
      LEFT JOIN governance_auditentry AS entry ON entry.tenant_id = seal.tenant_id AND entry.id = seal.entry_id
    WHERE seal.seq > block.after AND seal.seq <= least(block.after + {AT_ONCE}, %(upto)s) ORDER BY seal.seq
  ) AS sealed
) FROM generate_series(%(after)s, %(upto)s - 1, {AT_ONCE}) AS block (after)) TO STDOUT (FORMAT binary)
"""
# Joins each seal with its entry in order, and streams: rows are checked while PostgreSQL writes the next ones. Other
# plans read, join or sort all rows first.
IN_TURN = "SELECT " + ", ".join(
    f"set_config('{setting}', '{value}', true)"
    for setting, value in {
        "enable_hashjoin": "off",
        "enable_mergejoin": "off",
        "enable_sort": "off",
        "enable_bitmapscan": "off",
        "max_parallel_workers_per_gather": "0",
        "statement_timeout": "0",
    }.items()
)
FIRST_UNSEALED = """
SELECT entry.id, count(*) OVER () FROM governance_auditentry AS entry
WHERE entry.created_at < transaction_timestamp() - make_interval(secs => %s) AND NOT EXISTS (
  SELECT 1 FROM governance_auditseal AS seal WHERE seal.tenant_id = entry.tenant_id AND seal.entry_id = entry.id)
ORDER BY entry.id LIMIT 1
"""
FIRST_VANISHED = """
SELECT queued.id FROM governance_auditunsealed AS queued
WHERE NOT EXISTS (SELECT 1 FROM governance_auditentry AS entry WHERE entry.id = queued.id) ORDER BY queued.id LIMIT 1
"""


@dataclass(frozen=True)
class Verification:
    """The result of a verification. `seals`: the number of valid seals; `checkpoint`: the seal of the last checkpoint
    that was compared, 0 for none.

    `complete`: the end was reached; if not, continue after `upto`. `fault`: the first invalid row.
    """

    seals: int
    upto: int
    complete: bool
    checkpoint: int
    fault: Fault | None

    @property
    def intact(self) -> bool:
        return self.fault is None


def log_verify(
    tenant_id: UUID,
    *,
    checkpoints: Sequence[Checkpoint],
    after: int = 0,
    most: int | None = None,
    chain_of: Callable[..., Chain] = Chain,
) -> Verification:
    """Verify the seals after number `after`, at most `most` of them, against `checkpoints` and those of the database.

    Seals up to `after` are trusted, even against a checkpoint: a caller that verifies in parts verifies each part. The
    newest checkpoint before `after` only bounds how old an entry may claim to be. Raises Unreadable; KeyUnavailable.
    """
    key = public_key(tenant_id)
    with replica_reads():
        return _verify(tenant_id, key, checkpoints, after, most, chain_of)


def _verify(
    tenant_id: UUID,
    key: PublicKey,
    checkpoints: Sequence[Checkpoint],
    after: int,
    most: int | None,
    chain_of: Callable[..., Chain],
) -> Verification:
    last, first = _find_ends(tenant_id, after)
    upto = last if most is None else min(last, after + most)
    known = [*checkpoints, *_find_stored_checkpoints(tenant_id, after)]
    chain = chain_of(
        [checkpoint for checkpoint in known if checkpoint.tenant == str(tenant_id)],
        lambda checkpoint: is_signed(checkpoint, key),
        seq=after,
        at=first,
    )
    fault = _fault_of(chain, _stream_rows(tenant_id, after, upto))
    if fault is None and chain.seq < upto:
        fault = Fault(chain.seq + 1, None, "missing", f"seal {chain.seq + 1} is missing")
    complete = upto == last
    if fault is None and complete:
        fault = _fault_at_end(tenant_id, chain)
    return Verification(
        seals=chain.seq - after, upto=chain.seq, complete=complete, checkpoint=chain.signed_up_to(), fault=fault
    )


def log_verify_whole(
    tenant_id: UUID, *, checkpoints: Sequence[Checkpoint], processes: int, piece: int = PIECE
) -> Verification:
    """Verify the whole audit log with several processes, each of which verifies parts of the chain.

    Each part must begin with the chain hash that ends the part before. Forks, so the calling process must have one
    thread. Raises Unreadable; KeyUnavailable; Unavailable if a process is killed.
    """
    last, _ = _find_ends(tenant_id, 0)
    size = max(piece, -(-last // processes))
    if last <= size:
        return log_verify(tenant_id, checkpoints=checkpoints)
    starts = range(0, last, size)
    connection.close()  # a child must not share it
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        found = [
            pool.submit(
                log_verify,
                tenant_id,
                checkpoints=checkpoints,
                after=after,
                most=None if after == starts[-1] else size,
            )
            for after in starts
        ]
        try:
            return _join(piece.result() for piece in found)
        except BrokenProcessPool as error:
            raise Unavailable("A process that verified a piece was killed: the audit log was not checked.") from error


def _join(pieces: Iterable[Verification]) -> Verification:
    """Join the results of the parts; parts after the first broken one are ignored."""
    seals = checkpoint = 0
    for piece in pieces:
        seals, checkpoint = seals + piece.seals, piece.checkpoint or checkpoint
        if not piece.intact:
            break
    return replace(piece, seals=seals, checkpoint=checkpoint)


def refuse_strangers(tenant_id: UUID, saved: Sequence[Checkpoint]) -> None:
    """Check that a saved checkpoint belongs to this tenant and is signed. Raises Unreadable."""
    key = public_key(tenant_id)
    for checkpoint in saved:
        if checkpoint.tenant != str(tenant_id) or not is_signed(checkpoint, key):
            raise Unreadable(f"the checkpoint at seal {checkpoint.seq} was not signed for this tenant")


def _fault_of(chain: Chain, found: Generator[Row, None, None]) -> Fault | None:
    try:
        with closing(found) as rows:
            chain.walk(rows)
    except Broken as broken:
        return broken.fault
    return None


def _fault_at_end(tenant_id: UUID, chain: Chain) -> Fault | None:
    """Return the fault at the end: seals cut off, an entry unsealed for too long, or one lost before it was sealed."""
    try:
        chain.end()
    except Broken as broken:
        return broken.fault
    with tenant_transaction(tenant_id), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', '0', true)")
        cursor.execute(FIRST_UNSEALED, [SEALED_WITHIN])
        unsealed = cursor.fetchone()
        cursor.execute(FIRST_VANISHED)
        vanished = cursor.fetchone()
    if unsealed:
        detail = f"{unsealed[1]} entries have no seal, although they are older than a minute; this is the first"
        return Fault(chain.seq + 1, str(unsealed[0]), "unsealed", detail)
    if vanished:
        return Fault(chain.seq + 1, str(vanished[0]), "entry_missing", "the entry vanished before it was sealed")
    return None


def _find_ends(tenant_id: UUID, after: int) -> tuple[int, bytes]:
    """Return the last number in the chain, and the chain hash at number `after`. Raises Unreadable if there is none."""
    with tenant_transaction(tenant_id):
        last = AuditSeal.objects.order_by("-seq").values_list("seq", flat=True).first() or 0
        if after == 0:
            return last, GENESIS
        start = AuditSeal.objects.filter(seq=after).first()
    if start is None:
        raise Unreadable(f"there is no seal {after} to go on from")
    return last, bytes(start.chain_hash).hex().encode()


def _find_stored_checkpoints(tenant_id: UUID, after: int) -> list[Checkpoint]:
    """Return the checkpoints in the database from `after` on, and the last one before."""
    with tenant_transaction(tenant_id):
        rows = AuditCheckpoint.objects.order_by("seq")
        former = rows.filter(seq__lt=after).last()
        texts = rows.filter(seq__gte=after).values_list("text", flat=True)
        return [checkpoint_read(text) for text in ([former.text] if former else []) + list(texts)]


def _stream_rows(tenant_id: UUID, after: int, upto: int) -> Generator[Row, None, None]:
    """Yield the seals in (after, upto] with their entries; uses COPY, which costs the least for each row."""
    with tenant_transaction(tenant_id), connection.cursor() as cursor:
        cursor.execute(IN_UTC)
        cursor.execute(IN_TURN)
        with cursor.cursor.copy(ROWS, {"after": after, "upto": upto}) as copy:
            copy.set_types(["bytea"])
            for (block,) in copy.rows():
                yield from map(_row, block.split(b"\n") if block else ())


def _row(text: bytes) -> Row:
    line, _, seal = text.partition(b"\t")
    return Row(seal, None if line == MISSING_ENTRY else line)
