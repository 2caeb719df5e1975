"""Verifies an export of the audit log, offline. One file that needs only Python 3.11: copy it anywhere.

    python3 verifier.py EXPORT --public-key public-key.json --checkpoint checkpoint.json

EXPORT is the zip file or a folder with its contents. The key and the checkpoint are copies that you kept yourself, as a
forged export would contain forged ones. Exit code 0: intact; 1: broken, and the first invalid row is named; 2: the
export cannot be read. docs/audit.md explains the proof.

The product checks its database with the same functions.
"""

import argparse
import csv
import hashlib
import io
import json
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

FORMAT = "memos-checkpoint-1"
EXPORT_FORMAT = "memos-audit-2"
GENESIS = b"0" * 64  # the chain hash before the first seal
LEFT_OUT = b""  # instead of an entry that the filters of an export left out; its seal still stands in the chain
LATEST_COMMIT = timedelta(hours=1)  # no transaction is open for so long
ID = slice(7, 43)  # in a line: {"id":"…","at":"…
SECOND = slice(51, 70)  # 2026-11-21T19:26:50
COLUMNS = (
    "id",
    "at",
    "tenant_id",
    "created_at",
    "principal_kind",
    "principal_id",
    "member_id",
    "verb",
    "outcome",
    "object_type",
    "object_ids",
    "version",
    "before_hash",
    "after_hash",
    "detail",
    "context",
    "request_id",
)
RAW = frozenset({"object_ids", "version", "detail", "context"})  # in a CSV file these are JSON already
NULLABLE = frozenset({"member_id", "version", "before_hash", "after_hash"})


class Row(NamedTuple):
    """A seal and its entry.

    seal: number, entry's id, entry hash, previous hash and chain hash, with single spaces; hashes in hexadecimal. line:
    the sealed text of the entry, None if the entry is missing.
    """

    seal: bytes
    line: bytes | None


@dataclass(frozen=True)
class Fault:
    """The first invalid row: its number in the chain, its entry if known, and the reason."""

    seq: int
    entry_id: str | None
    reason: str
    detail: str


class Broken(Exception):
    """The audit log differs from what was sealed."""

    def __init__(self, seq: int, entry_id: bytes | None, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.fault = Fault(seq, entry_id.decode("ascii", "replace") if entry_id else None, reason, detail)


class Unreadable(Exception):
    """A file is no export, key or checkpoint."""


@dataclass(frozen=True)
class Checkpoint:
    """The signed state of the chain at one time. `at`: all entries committed by then had a seal."""

    tenant: str
    seq: int
    chain_hash: str
    at: str
    key: str
    signature: str

    def signed_text(self) -> bytes:
        return f"{FORMAT} {self.tenant} {self.seq} {self.chain_hash} {self.at} {self.key}".encode()

    def text(self) -> str:
        """Return the checkpoint as the text that is stored and downloaded, and that `checkpoint_read` reads."""
        return json.dumps({"format": FORMAT, **asdict(self)})


@dataclass(frozen=True)
class PublicKey:
    id: str
    raw: bytes

    def text(self) -> str:
        return json.dumps({"algorithm": "Ed25519", "key": self.id, "public_key": self.raw.hex()})


def entry_hash(line: bytes) -> bytes:
    return hashlib.sha256(line).hexdigest().encode()


def chain_hash(seq: int, entry_id: bytes, sealed: bytes, previous: bytes) -> bytes:
    """Return the hash of `seq entry_id entry_hash previous_hash`, an ASCII text with single spaces."""
    return hashlib.sha256(b"%d %b %b %b" % (seq, entry_id, sealed, previous)).hexdigest().encode()


class Chain:
    """Checks the seals in order, from the first one or from a signed checkpoint.

    `trusted` returns whether the signature of a checkpoint is valid. It is called only for checkpoints that affect the
    result, as a year has half a million of them.
    """

    def __init__(
        self,
        checkpoints: Iterable[Checkpoint],
        trusted: Callable[[Checkpoint], bool],
        *,
        seq: int = 0,
        at: bytes = GENESIS,
    ) -> None:
        self.seq = seq
        self.hash = at
        self.entries = 0
        self._trusted = trusted
        self._checkpoints: dict[int, list[Checkpoint]] = {}
        for checkpoint in checkpoints:
            self._checkpoints.setdefault(checkpoint.seq, []).append(checkpoint)
        self._passed: list[Checkpoint] = []
        former = sorted((place for place in self._checkpoints if place < seq), reverse=True)
        self._former = next(
            (checkpoint for place in former for checkpoint in self._checkpoints[place] if trusted(checkpoint)), None
        )
        self._earliest = _earliest_behind(self._former) if self._former else b""
        self._compare()

    def walk(self, rows: Iterable[Row]) -> None:
        """Check `rows`, which continue the former ones. Raises Broken at the first invalid row.

        Each seal is computed again from its entry and the seal before, and compared as text, which costs the least.
        """
        seq, signed = self.seq, self._checkpoints
        for row in rows:
            seq += 1
            text = b"%d %b %b %b" % (seq, *self._entry(row), self.hash)
            chained = hashlib.sha256(text).hexdigest().encode()
            if row.seal != b"%b %b" % (text, chained):
                raise _describe_fault(row, seq, self.hash)
            if row.line and row.line[SECOND] < self._earliest and (self._former or self.signed_up_to()):
                detail = "the entry claims a time before a checkpoint that did not know of it"
                raise Broken(seq, row.line[ID], "backdated", detail)
            self.seq, self.hash = seq, chained
            if seq in signed:
                self._compare()

    def end(self) -> None:
        """Check the end of the chain. Raises Broken if a checkpoint covers more entries."""
        for seq in sorted((place for place in self._checkpoints if place > self.seq), reverse=True):
            if any(map(self._trusted, self._checkpoints[seq])):
                detail = f"the audit log ends with seal {self.seq}, yet a signed checkpoint stands at seal {seq}"
                raise Broken(self.seq + 1, None, "cut_off", detail)

    def signed_up_to(self) -> int:
        """Return the seal number of the last checkpoint that matched the chain, 0 for none."""
        return next((checkpoint.seq for checkpoint in reversed(self._passed) if self._trusted(checkpoint)), 0)

    def _entry(self, row: Row) -> tuple[bytes, bytes]:
        """Return the id and hash of the entry, which must be those in its seal."""
        if row.line is None:
            raise _describe_fault(row, self.seq + 1, self.hash)
        if row.line == LEFT_OUT:
            parts = row.seal.split(b" ")
            if len(parts) != 5:
                raise _describe_fault(row, self.seq + 1, self.hash)
            return parts[1], parts[2]
        self.entries += 1
        return row.line[ID], entry_hash(row.line)

    def _compare(self) -> None:
        """Compare the chain with the checkpoints at its current seal."""
        for checkpoint in self._checkpoints.get(self.seq, ()):
            if checkpoint.chain_hash.encode() == self.hash:
                self._passed.append(checkpoint)
                self._earliest = max(self._earliest, _earliest_behind(checkpoint))
            elif self._trusted(checkpoint):
                detail = f"up to seal {self.seq} this is another history than the checkpoint of {checkpoint.at} signed"
                raise Broken(self.seq, None, "checkpoint", detail)


def _earliest_behind(checkpoint: Checkpoint) -> bytes:
    """Return the second that is the earliest possible time of an entry sealed after `checkpoint`."""
    earliest = datetime.fromisoformat(checkpoint.at).astimezone(UTC) - LATEST_COMMIT
    return earliest.strftime("%Y-%m-%dT%H:%M:%S").encode()


def _describe_fault(row: Row, seq: int, previous: bytes) -> Broken:
    """Describe the fault of a row that should have number `seq` and follow the chain hash `previous`."""
    parts = row.seal.split(b" ")
    if len(parts) != 5 or not parts[0].isdigit():
        return Broken(seq, None, "unreadable", f"what stands at the place of seal {seq} is no seal")
    place, entry_id, sealed, before, _ = parts
    if int(place) != seq:
        return Broken(seq, None, "missing", f"seal {seq} is missing: another one, {int(place)}, is at its place")
    if row.line is None:
        return Broken(seq, entry_id, "entry_missing", "the entry is gone, its seal is still there")
    if row.line != LEFT_OUT and (entry_hash(row.line), row.line[ID]) != (sealed, entry_id):
        return Broken(seq, entry_id, "entry_changed", "the entry is not what was sealed")
    if before != previous:
        return Broken(seq, entry_id, "chain", "its seal does not follow from the one before")
    return Broken(seq, entry_id, "chain", "its seal is not the hash of what it seals")


# Keys and checkpoints


def checkpoint_read(text: str) -> Checkpoint:
    """Read a checkpoint. Raises Unreadable."""
    try:
        found = json.loads(text)
        if found.pop("format") != FORMAT:
            raise Unreadable("not a checkpoint of a format that this verifier knows")
        checkpoint = Checkpoint(**found)
        if type(checkpoint.seq) is not int:
            raise Unreadable("not a checkpoint: it names no seal")
        datetime.fromisoformat(checkpoint.at)
        bytes.fromhex(checkpoint.signature)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Unreadable("not a checkpoint") from error
    return checkpoint


def checkpoints_read(text: str) -> list[Checkpoint]:
    """Read one checkpoint, or one from each line."""
    return [checkpoint_read(line) for line in text.splitlines() if line.strip()]


def public_key_read(text: str) -> PublicKey:
    """Read a public key. Raises Unreadable."""
    try:
        found = json.loads(text)
        key = PublicKey(id=found["key"], raw=bytes.fromhex(found["public_key"]))
    except (ValueError, TypeError, KeyError) as error:
        raise Unreadable("not a public key") from error
    if len(key.raw) != 32:
        raise Unreadable("an Ed25519 public key has 32 bytes")
    return key


def is_signed(checkpoint: Checkpoint, key: PublicKey) -> bool:
    return checkpoint.key == key.id and ed25519_verify(
        key.raw, checkpoint.signed_text(), bytes.fromhex(checkpoint.signature)
    )


# Ed25519 (RFC 8032 §5.1.7 and §6), verification only: it handles no secrets, so it need not run in constant time.

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]  # extended homogeneous coordinates


def ed25519_verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether `signature` is valid for `message` under the 32 bytes of `public`."""
    key = _decompress(public)
    commitment = _decompress(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or key is None or commitment is None or scalar >= ORDER:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % ORDER
    left, right = _multiply_point(scalar, BASE), _add_points(commitment, _multiply_point(challenge, key))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


def _add_points(point: Point, other: Point) -> Point:
    a = (point[1] - point[0]) * (other[1] - other[0]) % P
    b = (point[1] + point[0]) * (other[1] + other[0]) % P
    c = 2 * point[3] * other[3] * D % P
    d = 2 * point[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _multiply_point(scalar: int, point: Point) -> Point:
    result: Point = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = _add_points(result, point)
        point = _add_points(point, point)
        scalar >>= 1
    return result


def _decompress(data: bytes) -> Point | None:
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if len(data) != 32 or y >= P:
        return None
    x = _square_root((y * y - 1) * pow(D * y * y + 1, P - 2, P) % P)
    if x is None or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def _square_root(square: int) -> int | None:
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    return x if (x * x - square) % P == 0 else None


_base = _decompress((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
assert _base is not None
BASE: Point = _base


# An export: manifest.json, seals.txt, left-out.txt, entries.jsonl or entries.csv, checkpoints.jsonl, public-key.json


@dataclass(frozen=True)
class Report:
    """The result of a verification. `seals` and `entries`: the numbers of valid ones; `left_out`: sealed entries that
    the filters of the export left out.

    `after`: the seal after which the export begins.
    """

    intact: bool
    after: int
    seals: int
    entries: int
    left_out: int
    checkpoint: int  # the seal of the last checkpoint that was compared, 0 for none
    rows_per_second: int
    fault: Fault | None


def export_verify(
    path: Path,
    key: PublicKey,
    checkpoints: Sequence[Checkpoint],
    *,
    chain_of: Callable[..., Chain] = Chain,
) -> Report:
    """Verify a whole export against `checkpoints` and those in the export. Raises Unreadable."""
    started = time.monotonic()
    with ExitStack() as stack:
        open_file = _open_export(path, stack)
        manifest = manifest_read(open_file("manifest.json").read().decode(), key)
        _refuse_strangers(checkpoints, key, manifest["tenant"])
        own = checkpoints_read(open_file("checkpoints.jsonl").read().decode())
        after = int(manifest["after_seq"])
        known = [
            checkpoint
            for checkpoint in (*checkpoints, *own)
            if checkpoint.tenant == manifest["tenant"] and checkpoint.seq >= after
        ]
        chain = chain_of(known, lambda checkpoint: is_signed(checkpoint, key), seq=after, at=_start(known, key, after))
        left_out = _read_left_out(open_file("left-out.txt").read(), manifest)
        fault = _find_unexplained_omission(left_out, manifest) or _check_rows(
            chain,
            _read_rows(open_file("seals.txt"), _lines(open_file, manifest), left_out, after),
            int(manifest["upto_seq"]),
        )
    if fault is None and chain.signed_up_to() < chain.seq:
        raise Unreadable("no checkpoint at its last seal is signed with this key: nothing proves this export")
    done = chain.seq - after
    return Report(
        intact=fault is None,
        after=after,
        seals=done,
        entries=chain.entries,
        left_out=done - chain.entries,
        checkpoint=chain.signed_up_to(),
        rows_per_second=round(done / max(time.monotonic() - started, 1e-9)),
        fault=fault,
    )


def _start(known: Iterable[Checkpoint], key: PublicKey, after: int) -> bytes:
    """Return the chain hash where the export begins: the initial one, or that of a signed checkpoint at this seal."""
    if after == 0:
        return GENESIS
    found = next((checkpoint for checkpoint in known if checkpoint.seq == after and is_signed(checkpoint, key)), None)
    if found is None:
        raise Unreadable("the export begins behind a checkpoint that nobody signed with this key")
    return found.chain_hash.encode()


def manifest_text(manifest: Mapping[str, object]) -> bytes:
    """Return the signed text of a manifest: all fields but `signature`, as compact JSON in the order of names."""
    unsigned = {name: value for name, value in manifest.items() if name != "signature"}
    return f"{EXPORT_FORMAT} {json.dumps(unsigned, sort_keys=True, separators=(',', ':'))}".encode()


def manifest_read(text: str, key: PublicKey) -> dict[str, Any]:
    """Return the manifest of an export. Raises Unreadable unless it was signed with `key`."""
    manifest: dict[str, Any] = json.loads(text)
    if manifest.get("export") != EXPORT_FORMAT:
        raise Unreadable(f"not an export of the format {EXPORT_FORMAT}: use the verifier.py of its version")
    signature = bytes.fromhex(manifest["signature"])
    if manifest["key"] != key.id or not ed25519_verify(key.raw, manifest_text(manifest), signature):
        raise Unreadable("manifest.json is not signed with this key: nothing proves this export")
    return manifest


def _read_left_out(text: bytes, manifest: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the ranges (first, last) of the entries that the filters left out. Raises Unreadable unless signed."""
    if hashlib.sha256(text).hexdigest() != manifest["left_out_sha256"]:
        raise Unreadable("left-out.txt is not the list that manifest.json was signed with")
    pairs = [line.split() for line in text.splitlines()]
    return [(int(first), int(last)) for first, last in pairs]


def _find_unexplained_omission(left_out: Sequence[tuple[int, int]], manifest: Mapping[str, Any]) -> Fault | None:
    if not left_out or manifest["filters"]:
        return None
    return Fault(left_out[0][0], None, "left_out", "the entry was left out, and manifest.json names no filter")


def _check_rows(chain: Chain, rows: Iterable[Row], upto: int) -> Fault | None:
    """Check `rows`, which must end with the seal `upto`."""
    try:
        chain.walk(rows)
        chain.end()
        if chain.seq != upto:
            raise Broken(chain.seq + 1, None, "cut_off", f"the export was signed up to seal {upto}")
    except Broken as broken:
        return broken.fault
    return None


def _refuse_strangers(checkpoints: Iterable[Checkpoint], key: PublicKey, tenant: str) -> None:
    """Check that saved checkpoints are of this tenant and signed with this key. Raises Unreadable."""
    for checkpoint in checkpoints:
        if checkpoint.tenant != tenant or not is_signed(checkpoint, key):
            raise Unreadable(
                f"the checkpoint at seal {checkpoint.seq} is of another tenant, or not signed with this key"
            )


def _open_export(path: Path, stack: ExitStack) -> Callable[[str], BinaryIO]:
    """Return a function that opens the files of an export by name."""
    archive = stack.enter_context(zipfile.ZipFile(path)) if path.is_file() else None

    def open_file(name: str) -> BinaryIO:
        raw = archive.open(name) if archive else (path / name).open("rb", buffering=0)
        return stack.enter_context(io.BufferedReader(raw, 1 << 20))  # type: ignore[type-var]

    return open_file


NOWHERE = (sys.maxsize, sys.maxsize)


def _read_rows(
    seals: BinaryIO, lines: Iterator[bytes], left_out: Iterable[tuple[int, int]], after: int
) -> Iterator[Row]:
    """Yield each seal with its entry, unless the signed list says that the entry was left out."""
    ranges, number = iter(left_out), after
    first, last = next(ranges, NOWHERE)
    for number, text in enumerate(seals, start=after + 1):
        if number > last:
            first, last = next(ranges, NOWHERE)
        yield Row(text.rstrip(), LEFT_OUT if first <= number else next(lines, None))
    extra = next(lines, None)
    if extra is not None:
        raise Broken(number + 1, extra[ID], "unsealed", "an entry that no seal knows")


def _lines(open_file: Callable[[str], BinaryIO], manifest: Mapping[str, str]) -> Iterator[bytes]:
    if manifest["format"] == "csv":
        return _csv_lines(open_file("entries.csv"))
    return (line[:-1] if line.endswith(b"\n") else line for line in open_file("entries.jsonl"))


def _csv_lines(file: BinaryIO) -> Iterator[bytes]:
    reader = csv.reader(line.decode("utf-8", "surrogateescape") for line in file)
    next(reader, None)
    for values in reader:
        yield line_of(values).encode("utf-8", "surrogateescape")


def line_of(values: Sequence[str]) -> str:
    """Return the sealed line, from the values of a CSV row in the order of COLUMNS."""
    parts = (f'"{name}":{_value(name, value)}' for name, value in zip(COLUMNS, values, strict=False))
    return "{" + ",".join(parts) + "}"


def _value(name: str, value: str) -> str:
    if name in NULLABLE and value == "":
        return "null"
    return value if name in RAW else json.dumps(value, ensure_ascii=False)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("export", type=Path)
    parser.add_argument("--public-key", type=Path, required=True, help="the copy that you kept")
    parser.add_argument("--checkpoint", type=Path, action="append", default=[], help="one that you kept; repeatable")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    try:
        key = public_key_read(options.public_key.read_text(encoding="utf-8"))
        saved = [
            checkpoint
            for file in options.checkpoint
            for checkpoint in checkpoints_read(file.read_text(encoding="utf-8"))
        ]
        report = export_verify(options.export, key, saved)
    except (Unreadable, OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        print(f"cannot verify: {error}", file=sys.stderr)  # noqa: T201
        return 2
    print(json.dumps(asdict(report)) if options.json else report_text(report, saved))  # noqa: T201
    return 0 if report.intact else 1


def report_text(report: Report, saved: Sequence[Checkpoint]) -> str:
    """Return the report as text: the result, and its comparison with the saved checkpoints."""
    if report.fault is not None:
        entry = f", entry {report.fault.entry_id}" if report.fault.entry_id else ""
        return (
            f"BROKEN at seal {report.fault.seq}{entry}: {report.fault.detail}{_explain_newer_checkpoint(report, saved)}"
        )
    return (
        f"intact: {report.seals} seals, {report.entries} entries ({report.left_out} left out by the filters), "
        f"signed up to seal {report.checkpoint}; {report.rows_per_second} rows/s{_explain_covered_seals(report, saved)}"
    )


def _explain_newer_checkpoint(report: Report, saved: Sequence[Checkpoint]) -> str:
    """Explain a saved checkpoint newer than the signed end of the export: the export is older, or was cut off."""
    end = report.after + report.seals
    younger = min(
        (checkpoint for checkpoint in saved if checkpoint.seq > end),
        key=lambda checkpoint: checkpoint.seq,
        default=None,
    )
    if younger is None or report.fault is None or report.fault.reason != "cut_off" or report.checkpoint != end:
        return ""
    return (
        f"\nYour checkpoint at seal {younger.seq} is younger than the end of this export. Was the export made before "
        f"{younger.at}? Then the audit log had not come so far: compare a checkpoint at seal {end} or before, or "
        "make a new export. Was it made later? Then its end was cut off."
    )


def _explain_covered_seals(report: Report, saved: Sequence[Checkpoint]) -> str:
    """Return the seals that the saved checkpoints cover; after them, only the export itself is evidence."""
    end = report.after + report.seals
    compared = [checkpoint.seq for checkpoint in saved if report.after <= checkpoint.seq]
    before = "".join(
        f"\nYour checkpoint at seal {checkpoint.seq} was not compared: this export begins behind seal {report.after}. "
        "Make one that begins earlier."
        for checkpoint in saved
        if checkpoint.seq < report.after
    )
    if not compared:
        return f"{before}\nNo checkpoint but those inside the export was compared: keep one of your own."
    newest = max(compared)
    if newest >= end:
        return before
    return (
        f"{before}\nYour newest checkpoint is older than the end of this export: for the seals {newest + 1} to {end} "
        "there is the export's own checkpoint alone, which whoever has the signing key can make. Compare one that you "
        f"got another way and that stands nearer to seal {end}."
    )


if __name__ == "__main__":
    sys.exit(main())
