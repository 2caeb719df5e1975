"""An export of the audit log, changed by the person who carries it away: what is missing must show."""

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from governance.audit.checkpoints import checkpoints_outside, public_key, sign_manifest
from governance.audit.reading.files import export_write
from governance.audit.reading.queries import query_read
from governance.audit.verifier import Report, Unreadable, checkpoint_read, export_verify, manifest_text
from governance.keys.services import key_store
from governance.keys.tables import AUDIT_SIGNING
from governance.vocabulary import ExportFormat
from tests.factories import World
from tests.governance.audit.logs import log_make
from tests.harness.cases import each_case

BOTH = pytest.mark.parametrize("form", list(ExportFormat))


def make_export(world: World, folder: Path, form: ExportFormat, **filters: str) -> Path:
    """An unpacked export of acme's audit log of 40 entries and more."""
    log_make(world.alice.actor, 40)
    packed = folder / "export.zip"
    query = query_read(filters)
    export_write(actor=world.ada.actor, path=packed, query=query, form=form, progress=lambda part: None)
    zipfile.ZipFile(packed).extractall(folder / "export")
    return folder / "export"


def verify(world: World, export: Path) -> Report:
    return export_verify(export, public_key(world.acme.id), checkpoints_outside(world.acme.id))


def delete_entries(export: Path, form: ExportFormat, first: int, count: int) -> None:
    """Remove entries from the file that holds them. first: counted from 0."""
    path = export / f"entries.{form}"
    lines = path.read_text().splitlines(keepends=True)
    begin = first + 1 if form is ExportFormat.CSV else first  # behind the names of the columns
    path.write_text("".join([*lines[:begin], *lines[begin + count :]]))


def change_manifest(export: Path, **changes: object) -> None:
    manifest = json.loads((export / "manifest.json").read_text())
    (export / "manifest.json").write_text(json.dumps(manifest | changes))


def claim_left_out(export: Path, first: int, last: int) -> str:
    """Say that the filters left these places out; the hash that the manifest would have to name."""
    text = f"{first} {last}\n"
    (export / "left-out.txt").write_text(text)
    return hashlib.sha256(text.encode()).hexdigest()


def test_ten_entries_deleted_from_an_unfiltered_export_are_reported(world: World, tmp_path: Path) -> None:
    export = make_export(world, tmp_path, ExportFormat.JSONL)
    assert verify(world, export).intact
    delete_entries(export, ExportFormat.JSONL, 10, 10)
    fault = verify(world, export).fault
    assert fault is not None
    assert fault.seq == 11


def test_deleted_entries_that_seals_call_left_out_are_reported(world: World, tmp_path: Path) -> None:
    """The flag of the former format, which the verifier believed."""
    export = make_export(world, tmp_path, ExportFormat.JSONL)
    delete_entries(export, ExportFormat.JSONL, 10, 10)
    seals = (export / "seals.txt").read_text().splitlines()
    flagged = [f"{line} {0 if 10 <= number < 20 else 1}" for number, line in enumerate(seals)]
    (export / "seals.txt").write_text("\n".join(flagged) + "\n")
    assert not verify(world, export).intact


@BOTH
def test_a_forged_list_of_what_was_left_out_is_refused(world: World, tmp_path: Path, form: ExportFormat) -> None:
    export = make_export(world, tmp_path, form)
    delete_entries(export, form, 0, 3)
    digest = claim_left_out(export, 1, 3)
    with pytest.raises(Unreadable, match=r"left-out\.txt"):
        verify(world, export)
    change_manifest(export, left_out_sha256=digest)
    with pytest.raises(Unreadable, match="not signed"):
        verify(world, export)


@each_case(
    "change", [{"filters": {"verb": "memory.read"}}, {"upto_seq": 20}, {"after_seq": 1}, {"entries": 1}, {"slug": "x"}]
)
def test_a_changed_manifest_is_refused(world: World, tmp_path: Path, change: Mapping[str, object]) -> None:
    export = make_export(world, tmp_path, ExportFormat.JSONL)
    change_manifest(export, **change)
    with pytest.raises(Unreadable, match="not signed"):
        verify(world, export)


def test_entries_deleted_beside_those_that_a_filter_left_out_are_reported(world: World, tmp_path: Path) -> None:
    export = make_export(world, tmp_path, ExportFormat.JSONL, verb="memory.updated")
    report = verify(world, export)
    assert report.intact
    assert report.left_out > 0
    delete_entries(export, ExportFormat.JSONL, 5, 1)
    assert not verify(world, export).intact


def test_an_export_cut_back_to_an_earlier_checkpoint_is_reported(world: World, tmp_path: Path) -> None:
    """That checkpoint is genuine, and anybody who may read the audit log can download it."""
    log_make(world.alice.actor, 40)
    earlier = checkpoints_outside(world.acme.id)[0]
    export = make_export(world, tmp_path, ExportFormat.JSONL)
    for name in ("entries.jsonl", "seals.txt"):
        lines = (export / name).read_text().splitlines(keepends=True)
        (export / name).write_text("".join(lines[: earlier.seq]))
    (export / "checkpoints.jsonl").write_text(earlier.text() + "\n")
    fault = export_verify(export, public_key(world.acme.id), [checkpoint_read(earlier.text())]).fault
    assert fault is not None
    assert (fault.seq, fault.reason) == (earlier.seq + 1, "cut_off")


def test_an_unfiltered_export_never_verifies_with_anything_left_out(world: World, tmp_path: Path) -> None:
    """Not even when the holder of the signing key signed it so."""
    export = make_export(world, tmp_path, ExportFormat.JSONL)
    delete_entries(export, ExportFormat.JSONL, 10, 10)
    digest = claim_left_out(export, 11, 20)
    manifest = json.loads((export / "manifest.json").read_text()) | {"left_out_sha256": digest}
    (export / "manifest.json").write_text(json.dumps(sign_manifest(world.acme.id, manifest)))
    fault = verify(world, export).fault
    assert fault is not None
    assert (fault.seq, fault.reason) == (11, "left_out")


def test_the_signed_text_is_the_one_that_the_documentation_describes(world: World, tmp_path: Path) -> None:
    export = make_export(world, tmp_path, ExportFormat.JSONL)
    manifest = json.loads((export / "manifest.json").read_text())
    signature = manifest.pop("signature")
    text = f"memos-audit-2 {json.dumps(manifest, sort_keys=True, separators=(',', ':'))}".encode()
    assert manifest_text(manifest | {"signature": signature}) == text
    assert manifest["key"] == str(key_store().key_for(world.acme.id, AUDIT_SIGNING).id)
