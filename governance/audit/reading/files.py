"""The file of an export: the entries, their seals, the checkpoint at their end, the key and the verifier itself.

governance/audit/verifier.py reads it; docs/audit.md describes it. The file lies outside the database, mode 0600.
"""

import csv
import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection

from governance.actor import Actor
from governance.audit import verifier
from governance.audit.checkpoints import checkpoint_write, public_key, sign_manifest
from governance.audit.lines import IN_UTC, LINE
from governance.audit.reading.queries import AuditQuery, query_words
from governance.audit.seals import entries_seal
from governance.audit.verifier import COLUMNS, EXPORT_FORMAT, Checkpoint, checkpoint_read
from governance.database import acting
from governance.models import AuditCheckpoint, AuditEntry, Tenant
from governance.replica import reading
from governance.vocabulary import ExportFormat

BATCH = 5_000
SEALS = f"""
SELECT seal.seq, seal.entry_id, encode(seal.entry_hash, 'hex'), encode(seal.previous_hash, 'hex'),
  encode(seal.chain_hash, 'hex'), CASE WHEN entry.id IS NOT NULL THEN {LINE} END,
  entry.detail::text, entry.context::text
FROM governance_auditseal AS seal
  LEFT JOIN governance_auditentry AS entry ON entry.tenant_id = seal.tenant_id AND entry.id = seal.entry_id
WHERE seal.seq > %s AND seal.seq <= %s ORDER BY seal.seq
"""
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Written:
    """The numbers of entries and bytes in a file."""

    rows: int
    size: int


class SealedRow(NamedTuple):
    seq: int
    entry_id: UUID
    entry_hash: str
    previous_hash: str
    chain_hash: str
    line: str | None
    detail: str
    context: str


@dataclass(frozen=True)
class Span:
    """The part of the chain that an export proves: after one checkpoint (None: from the first seal) up to another."""

    start: Checkpoint | None
    end: Checkpoint | None

    @property
    def after(self) -> int:
        return self.start.seq if self.start else 0

    @property
    def upto(self) -> int:
        return self.end.seq if self.end else 0


def export_path(tenant_id: UUID, export_id: UUID) -> Path:
    path: Path = settings.DATA_DIR / "exports" / str(tenant_id) / f"{export_id}.zip"
    return path


def export_write(*, actor: Actor, path: Path, query: AuditQuery, form: ExportFormat, progress: Progress) -> Written:
    """Write the file atomically. Unsealed entries are sealed first, and a checkpoint is signed.

    The caller has checked the permission. Raises KeyUnavailable.
    """
    while entries_seal(actor.tenant_id):
        pass
    end = checkpoint_write(actor.tenant_id)
    span = Span(start=_find_start(actor, query), end=end)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_suffix(f".{uuid4().hex}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            rows = _write_entries(file, actor, query, form, span, progress)
        part.replace(path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    return Written(rows=rows, size=path.stat().st_size)


def _find_start(actor: Actor, query: AuditQuery) -> Checkpoint | None:
    """Return the last checkpoint before the requested time; all requested entries are sealed after it."""
    if query.since is None:
        return None
    with acting(actor):
        before = AuditCheckpoint.objects.filter(tenant_id=actor.tenant_id, created_at__lt=query.since)
        row = before.order_by("-seq").first()
    return checkpoint_read(row.text) if row else None


def _write_entries(
    file: IO[bytes], actor: Actor, query: AuditQuery, form: ExportFormat, span: Span, progress: Progress
) -> int:
    """Write the entries as they are read, and the seals, which are smaller, in a second pass."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open(f"entries.{form}", "w", force_zip64=True) as entries:
            rows = _entries(entries, actor, query, form, span, lambda part: progress(part * 0.6))
        with archive.open("seals.txt", "w", force_zip64=True) as seals:
            left_out = _write_seals(seals, actor, query, span, lambda part: progress(0.6 + part * 0.4))
        for name, text in _build_small_files(actor, query, form, span, rows, left_out).items():
            archive.writestr(name, text)
    return rows


def _entries(
    file: IO[bytes], actor: Actor, query: AuditQuery, form: ExportFormat, span: Span, progress: Progress
) -> int:
    rows = 0
    if form is ExportFormat.CSV:
        file.write((",".join(COLUMNS) + "\n").encode())
    for batch, wanted in _read_batches(actor, query, span, progress):
        entries = [row for row in batch if row.entry_id in wanted and row.line]  # what is gone shows by its seal
        text = "".join(map(_format_csv_row if form is ExportFormat.CSV else _json_line, entries))
        file.write(text.encode())
        rows += len(entries)
    return rows


def _write_seals(file: IO[bytes], actor: Actor, query: AuditQuery, span: Span, progress: Progress) -> str:
    """Write every seal of the span. Return the ranges that the filters left out: a line `first last` for each."""
    runs: list[list[int]] = []
    for batch, wanted in _read_batches(actor, query, span, progress):
        lines = (f"{row.seq} {row.entry_id} {row.entry_hash} {row.previous_hash} {row.chain_hash}\n" for row in batch)
        file.write("".join(lines).encode())
        for row in batch:
            if row.entry_id in wanted:
                continue
            if runs and runs[-1][1] == row.seq - 1:
                runs[-1][1] = row.seq
            else:
                runs.append([row.seq, row.seq])
    return "".join(f"{first} {last}\n" for first, last in runs)


def _read_batches(
    actor: Actor, query: AuditQuery, span: Span, progress: Progress
) -> Iterator[tuple[list[SealedRow], frozenset[UUID]]]:
    """Yield batches of the span's seals with their entries, and the ids of the requested entries; each batch is read in
    a transaction.
    """
    for low in range(span.after, span.upto, BATCH):
        with reading(actor), connection.cursor() as cursor:
            cursor.execute(IN_UTC)
            cursor.execute(SEALS, [low, min(low + BATCH, span.upto)])
            batch = [SealedRow(*row) for row in cursor.fetchall()]
            wanted = _match_entries(actor, query, batch)
        yield batch, wanted
        progress((low + BATCH - span.after) / (span.upto - span.after + BATCH))


def _match_entries(actor: Actor, query: AuditQuery, batch: list[SealedRow]) -> frozenset[UUID]:
    ids = [row.entry_id for row in batch]
    if query.is_empty:
        return frozenset(ids)
    rows = AuditEntry.objects.filter(query.condition(), tenant_id=actor.tenant_id, id__in=ids)
    return frozenset(rows.values_list("id", flat=True))


def _json_line(row: SealedRow) -> str:
    return f"{row.line}\n"


def _format_csv_row(row: SealedRow) -> str:
    """Return the CSV values of an entry; JSON columns keep their sealed text, so that the line can be rebuilt."""
    values = json.loads(row.line or "")
    contents = {"detail": row.detail, "context": row.context}
    cells = [contents.get(name, _cell(values[name])) for name in COLUMNS]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _build_small_files(
    actor: Actor, query: AuditQuery, form: ExportFormat, span: Span, rows: int, left_out: str
) -> dict[str, str]:
    """Return the small files of the export by name."""
    with acting(actor):
        slug = Tenant.objects.get(id=actor.tenant_id).slug
    manifest = {
        "export": EXPORT_FORMAT,
        "tenant": str(actor.tenant_id),
        "slug": slug,
        "format": form,
        "filters": query_words(query),
        "after_seq": span.after,
        "upto_seq": span.upto,
        "entries": rows,
        "left_out_sha256": hashlib.sha256(left_out.encode()).hexdigest(),
    }
    checkpoints = [checkpoint.text() for checkpoint in (span.start, span.end) if checkpoint]
    return {
        "manifest.json": json.dumps(sign_manifest(actor.tenant_id, manifest), indent=2),
        "left-out.txt": left_out,
        "checkpoints.jsonl": "".join(f"{text}\n" for text in checkpoints),
        "public-key.json": public_key(actor.tenant_id).text(),
        "verifier.py": Path(verifier.__file__).read_text(encoding="utf-8"),
        "README.txt": README,
    }


README = re.sub(
    r"(?m)^ +",
    "",
    """\
    An export of an audit log, with proof.

    python3 verifier.py THIS.zip --public-key YOUR-COPY-OF-public-key.json --checkpoint YOUR-COPY-OF-A-CHECKPOINT

    Take verifier.py, the public key and a checkpoint from where you keep them, not from here: whoever bends an export
    can bend those in it too. entries.*: the entries that were asked for, in the order of their seals. seals.txt: place,
    entry, hash of the entry, chain hash before, chain hash. left-out.txt: the first and last place of each run of
    entries that the filters left out. checkpoints.jsonl: what was signed. manifest.json: what was asked for, and the
    hash of left-out.txt, signed.
    """,
)
