"""Files larger than a call: uploaded in parts, read and stored in parts, never whole in memory or in the clear."""

import io
import resource
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from governance.database import acting
from governance.errors import QuotaExceeded
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.evidence import Evidence
from tests.vault.api.contract import Contract, fields_at_fault
from tests.vault.exchange import foreign_files
from tests.vault.exchange.test_exchange import FILE_TYPE, jsonl, line
from tests.vault.outbox import run_jobs
from vault.exchange import uploads
from vault.exchange.file_reading import PART, frame_parts, read_parts
from vault.exchange.sealed_file import CHUNK, sealed_file
from vault.models import Cube, Upload

MIB = 1024 * 1024
LONGEST_CALL = 8 * MIB


def upload(client: Contract, content: bytes, size: int, name: str = "file.zip") -> str:
    """Upload a file in parts of a size; the id."""
    begun = client.raw(f"imports/uploads/?name={name}", content[:size], content_type=FILE_TYPE)
    assert begun.status == 201, begun
    upload_id: str = begun.json["id"]
    for number, at in enumerate(range(size, len(content), size), 1):
        part = content[at : at + size]
        reply = client.raw(f"imports/uploads/{upload_id}/?number={number}", part, content_type=FILE_TYPE)
        assert (reply.status, reply.json["bytes"]) == (200, min((number + 1) * size, len(content))), reply
    return upload_id


def import_upload(client: Contract, upload_id: str) -> dict[str, Any]:
    reply = client.raw(f"imports/?upload={upload_id}", b"", content_type=FILE_TYPE)
    assert reply.status == 202, reply
    run_jobs()
    job: dict[str, Any] = client.get(f"jobs/{reply.json['job']['id']}/").json
    return job


def count_uploads(world: World, name: str) -> int:
    with acting(world.person(name).actor):
        return Upload.objects.count()


def test_file_in_parts_is_checked_and_imported_as_a_whole(world: World, alice: Contract) -> None:
    content = foreign_files.chatgpt_zip()
    upload_id = upload(alice, content, 700)
    tried = alice.raw(f"imports/?upload={upload_id}&dry_run=true", b"", content_type=FILE_TYPE).json
    assert (tried["format"], tried["new"]) == ("chatgpt", len(foreign_files.CHATGPT_CONTENTS))
    assert import_upload(alice, upload_id)["result"]["stored"] == len(foreign_files.CHATGPT_CONTENTS)
    assert count_uploads(world, "alice") == 0
    assert alice.raw(f"imports/?upload={upload_id}", b"", content_type=FILE_TYPE).status == 404


def test_part_is_taken_once_and_in_order(alice: Contract) -> None:
    upload_id = upload(alice, b"content\nx\n", 100)
    assert alice.raw(f"imports/uploads/{upload_id}/?number=2", b"y\n", content_type=FILE_TYPE).status == 409
    for _ in range(2):
        reply = alice.raw(f"imports/uploads/{upload_id}/?number=1", b"y\n", content_type=FILE_TYPE)
        assert (reply.status, reply.json["bytes"]) == (200, 12)
    assert fields_at_fault(alice.raw(f"imports/uploads/{upload_id}/?number=2", b"", content_type=FILE_TYPE)) == {"file"}
    assert fields_at_fault(alice.raw(f"imports/uploads/{upload_id}/", b"y", content_type=FILE_TYPE)) == {"number"}
    assert fields_at_fault(alice.raw("imports/?upload=x", b"", content_type=FILE_TYPE)) == {"upload"}
    tried = alice.raw(f"imports/?upload={upload_id}&dry_run=true&format=csv", b"", content_type=FILE_TYPE).json
    assert tried["new"] == 2
    assert alice.delete(f"imports/uploads/{upload_id}/").status == 204
    assert alice.delete(f"imports/uploads/{upload_id}/").status == 404


@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("charlie", 404), ("olivia", 404)])
def test_upload_of_another_is_neither_added_to_nor_imported(
    who: str, status: int, world: World, alice: Contract, request: pytest.FixtureRequest
) -> None:
    upload_id = upload(alice, b"content\nx\n", 100)
    other: Contract = request.getfixturevalue(who)
    for reply in (
        other.raw(f"imports/uploads/{upload_id}/?number=1", b"y\n", content_type=FILE_TYPE),
        other.raw(f"imports/?upload={upload_id}&format=csv", b"", content_type=FILE_TYPE),
        other.delete(f"imports/uploads/{upload_id}/"),
    ):
        assert reply.status == status, reply
    assert count_uploads(world, "alice") == 1


def test_page_takes_a_file_in_parts_and_previews_it(world: World, alice: Contract) -> None:
    browser, content = signed_in(world.alice), foreign_files.claude_zip()
    begun = browser.post("/exchange/parts/?name=data.zip", content[:900], content_type=FILE_TYPE).json()
    more = browser.post(f"/exchange/parts/{begun['id']}/?number=1", content[900:], content_type=FILE_TYPE)
    assert more.status_code == 200
    page = browser.get(f"{begun['address']}?format=").content.decode()
    assert ("data.zip" in page, "Claude export" in page, "Import 9 memories" in page) == (True, True, True)
    done = browser.post(begun["address"], {"format": "claude"})
    run_jobs()
    assert "9 memories stored" in browser.get(done["Location"]).content.decode()
    assert browser.get(begun["address"]).status_code == 404
    refused = signed_in(world.bob).post("/exchange/parts/?name=x", b"x", content_type=FILE_TYPE)
    assert (refused.status_code, count_uploads(world, "alice")) == (403, 0)


def test_parts_over_the_quota_are_refused(world: World, alice: Contract, olivia: Contract) -> None:
    holder = {"kind": "member", "id": str(world.alice.member.id)}
    quota = olivia.send("PUT", "quotas/", {"holder": holder, "limits": {"bytes": 1_000}})
    assert quota.status == 200, quota
    upload_id = upload(alice, b"x" * 600, 600)
    refused = alice.raw(f"imports/uploads/{upload_id}/?number=1", b"x" * 600, content_type=FILE_TYPE)
    assert refused.json["code"] == QuotaExceeded.code
    assert count_uploads(world, "alice") == 1


def test_import_of_many_memories_waits_in_parts_until_stored(world: World, alice: Contract) -> None:
    count = PART + 20
    file = jsonl(*(line(number, f"The {foreign_name(number)} nests by the mill.") for number in range(count)))
    job = alice.raw("imports/", file, content_type=FILE_TYPE).json["job"]["id"]
    assert count_uploads(world, "alice") == 2
    run_jobs()
    view = alice.get(f"jobs/{job}/").json
    assert (view["status"], view["result"]["stored"], view["done"], view["total"]) == ("succeeded", count, count, count)
    assert count_uploads(world, "alice") == 0


def foreign_name(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def test_erasure_of_a_person_drops_the_parts_of_a_waiting_import(
    world: World, alice: Contract, olivia: Contract
) -> None:
    file = jsonl(*(line(number, f"The {foreign_name(number)} nests.") for number in range(PART + 1)))
    job = alice.raw("imports/", file, content_type=FILE_TYPE).json["job"]["id"]
    with acting(world.olivia.actor):
        assert uploads.uploads_drop(actor=world.olivia.actor) == 2
    run_jobs()
    assert alice.get(f"jobs/{job}/").json["status"] == "failed"
    assert alice.list_contents() == []


def test_temporary_file_is_read_from_anywhere_and_never_in_the_clear() -> None:
    plain = bytes(range(256)) * (CHUNK // 256) * 2 + b"the end"
    with sealed_file() as file:
        file.write(plain[at : at + 100_000] for at in range(0, len(plain), 100_000))
        assert (len(file), b"the end" in file.path.read_bytes(), repr(file.key) in repr(file)) == (
            len(plain),
            False,
            False,
        )
        with file.open() as stream:
            assert stream.read() == plain
            stream.seek(-7, io.SEEK_END)
            assert stream.read() == b"the end"
            stream.seek(CHUNK - 2)
            assert stream.read(4) == plain[CHUNK - 2 : CHUNK + 2]
    assert not file.path.exists()
    lines = [b"%d" % number for number in range(2 * PART + 1)]
    with sealed_file() as file:
        file.write(frame_parts(lines))
        assert [len(part.split(b"\n")) for part in read_parts(file)] == [PART, PART, 1]


def chats_zip(path: Path, size: int) -> int:
    """Write an export of ChatGPT with this many bytes of conversations, beside pictures; the number of messages."""
    messages, written, number = 0, 0, 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        while written < size:
            chats = [chat(number + at) for at in range(50)]
            content = foreign_files.dumped(chats)
            archive.writestr(f"conversations-{number // 50:03}.json", content)
            archive.writestr(f"pictures/{number}.png", b"\x00" * MIB)
            written, number, messages = written + len(content), number + 50, messages + 50 * 40
    return messages


def chat(number: int) -> dict[str, Any]:
    nodes = [
        foreign_files.message(
            f"m{number}-{at}",
            f"m{number}-{at - 1}" if at else f"root-{number}",
            "assistant" if at % 2 else "user",
            foreign_files.words(f"The {foreign_name(number)} {foreign_name(at)}: {invent_text(number * 100 + at)}"),
        )
        for at in range(40)
    ]
    return foreign_files.conversation(number, *nodes)


def invent_text(seed: int) -> str:
    """About 900 characters that pack to half of their length."""
    return " ".join(sha256(f"{seed} {at}".encode()).hexdigest() for at in range(14))


@pytest.mark.full
def test_import_of_a_hundred_megabytes_takes_bounded_memory(
    world: World, alice: Contract, tmp_path: Path, full_size: bool, evidence: Evidence
) -> None:
    size = (100 if full_size else 12) * 1_000_000
    path = tmp_path / "chats.zip"
    messages = chats_zip(path, size)
    content = path.read_bytes()  # by the client, which is this process, too
    before = peak()
    # This one process holds what client, request, seal and statement each hold of a call: 180 MiB for 8 MiB.
    upload_id = upload(alice, content, 4 * MIB)
    job = import_upload(alice, upload_id)
    grown = peak() - before
    assert (job["status"], job["result"]["stored"]) == ("succeeded", messages)
    with acting(world.alice.actor):
        assert Cube.objects.count() == messages
    assert count_uploads(world, "alice") == 0
    assert grown < 256, f"{grown} MiB more for {size} bytes"
    evidence(
        row=32, name="large-import", figures={"bytes": size, "memories": messages, "more_memory_mib": round(grown)}
    )


def peak() -> float:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
