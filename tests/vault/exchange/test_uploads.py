"""The import in the browser: upload, preview with a mapping, import, report. No step needs a script."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models.functions import Now
from django.test import Client

from governance.database import acting
from governance.models import AuditEntry, OutboxEvent
from governance.vocabulary import Topic, Verb
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, fields_at_fault
from tests.vault.exchange.foreign_files import chatgpt_conversations, claude_conversations, dumped
from tests.vault.exchange.test_exchange import FILE_TYPE, jsonl, line
from tests.vault.outbox import run_jobs
from vault.models import Upload

Superuser = Callable[[], psycopg.Connection]
TABLE = (
    b"Aussage,Wer,Ort,Wann\n"
    b"Ana takes the train.,ana,/old,2026-05-01\n"
    b"Bo likes tea.,bo,/old,yesterday\n"
    b"Cy reads at night.,bo,/other,2026-05-02\n"
    b",bo,/old,2026-05-02\n"
)
COLUMNS = {"column_content": "Aussage", "column_speaker": "Wer", "column_namespace": "Ort", "column_event_time": "Wann"}
RENAMED = {
    "their_namespace": ["/old", "/other"],
    "our_namespace": ["/team/new", "/other"],
    "their_speaker": ["bo", "ana"],
    "our_speaker": ["Bo", "ana"],
}


@pytest.fixture
def browser(world: World) -> Client:
    return signed_in(world.alice)


def upload_file(browser: Client, content: bytes = TABLE, name: str = "notes.csv", form: str = "") -> str:
    """The address of the preview."""
    reply = browser.post("/exchange/", {"format": form, "file": SimpleUploadedFile(name, content)})
    assert reply.status_code == 303, reply.content
    found: str = reply["Location"]
    return found


def open_page(browser: Client, address: str, **form: Any) -> str:
    reply = browser.post(address, {**form, "try": "yes"}) if form else browser.get(address)
    assert reply.status_code == 200, reply.content
    return str(reply.content.decode())


def test_table_is_imported_by_the_columns_namespaces_and_speakers_that_are_chosen(
    browser: Client, alice: Contract
) -> None:
    address = upload_file(browser)
    assert "name the column of the text" in open_page(browser, address)
    page = open_page(browser, address, **COLUMNS)
    assert all(words in page for words in ("Ana takes the train.", "said by bo", "Import 3 memories", "/old"))
    assert ("a date that cannot be read" in page, "no text" in page, "row 2" in page) == (True, True, True)
    page = open_page(browser, address, **COLUMNS, **RENAMED)
    assert "said by Bo" in page
    assert alice.list_contents() == []
    asked = browser.post(address, {**COLUMNS, **RENAMED})
    assert asked.status_code == 422
    assert "There is no namespace /team/new." in asked.content.decode(), "a typed path that is new is asked about"
    assert "There is no namespace /other." not in asked.content.decode(), "the file itself names it"
    assert alice.list_contents() == []
    done = browser.post(address, {**COLUMNS, **RENAMED, "new_namespace": "/team/new"})
    assert done.status_code == 303
    run_jobs()
    report = browser.get(done["Location"]).content.decode()
    assert all(words in report for words in ("3 memories stored", "a date that cannot be read", "row 2", "row 4"))
    found = {memory["content"]: memory for memory in alice.get("memories/").json["results"]}
    assert {content: (memory["namespace"]["path"], memory["speaker"]) for content, memory in found.items()} == {
        "Ana takes the train.": ("/team/new", "ana"),
        "Bo likes tea.": ("/team/new", "Bo"),
        "Cy reads at night.": ("/other", "Bo"),
    }
    assert browser.get(address).status_code == 404  # the file was needed once


def test_guessed_column_can_be_taken_back(browser: Client) -> None:
    address = upload_file(browser, b"text,title\nAna takes the train.,Travel\n")
    assert '<p class="strong" dir="auto">Travel</p>' in open_page(browser, address)
    page = open_page(browser, address, column_content="text", column_title="")
    assert ("Ana takes the train." in page, ">Travel</p>" in page) == (True, False)


def test_changed_memories_of_an_earlier_import_are_counted_and_updated(browser: Client, alice: Contract) -> None:
    browser.post(upload_file(browser, jsonl(line(1)), "a.jsonl"))
    run_jobs()
    address = upload_file(browser, jsonl(line(1).replace(b"train", b"bus"), line(2)), "a.jsonl")
    page = open_page(browser, address)
    assert ("with other words here" in page, "Import 1 memory" in page) == (True, True)
    assert "Import 2 memories" in open_page(browser, address, on_conflict="update")
    report = browser.post(address, {"on_conflict": "update"})["Location"]
    run_jobs()
    assert "1 updated" in browser.get(report).content.decode()
    assert "Ana takes the bus." in alice.list_contents()


def test_report_says_how_far_an_import_is(browser: Client) -> None:
    report = browser.post(upload_file(browser, jsonl(line(1), line(2)), "a.jsonl"))["Location"]
    page = browser.get(report).content.decode()
    assert ('hx-trigger="every 2s"' in page, "0 of 2" in page) == (True, True)
    part = browser.get(report, headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith("<div")
    run_jobs()
    page = browser.get(report).content.decode()
    assert ("hx-trigger" in part, "2 of 2" in page, "2 memories stored" in page) == (True, True, True)
    assert f'href="{report}"' in browser.get("/exchange/").content.decode()


@each_case(
    ("name", "form", "content"),
    [
        ("notes", "", b"text\nx\n"),  # no ending tells the format
        ("notes.json", "", b"[]"),
        ("notes.csv", "", b"\xff\xfe\xfa"),
        ("notes.csv", "", b"a,a\n1,2\n"),
        ("cube.zip", "memos", b"PK nonsense"),
        ("pack.mempack", "", b"nonsense"),
        ("notes.jsonl", "jsonl", b"{}\n"),
    ],
)
def test_unreadable_file_is_refused_and_not_stored(
    name: str, form: str, content: bytes, world: World, browser: Client
) -> None:
    reply = browser.post("/exchange/", {"format": form, "file": SimpleUploadedFile(name, content)})
    assert (reply.status_code, b'role="alert"' in reply.content) == (422, True)
    assert browser.post("/exchange/", {"format": "csv"}).status_code == 422
    with acting(world.alice.actor):
        assert not Upload.objects.exists()


@each_case(
    "form",
    [
        {"namespace": "../x"},
        {"namespace": "\x00"},
        {"persona": "\x00"},
        {**COLUMNS, "column_title": "Missing"},
        {**COLUMNS, "our_speaker": "\x00", "their_speaker": "bo"},
        {**COLUMNS, "our_namespace": "nowhere", "their_namespace": "/old"},
    ],
)
def test_wrong_mapping_is_refused_with_the_form_and_stores_nothing(
    form: dict[str, str], browser: Client, alice: Contract
) -> None:
    address = upload_file(browser)
    reply = browser.post(address, {"column_content": "Aussage", **form})
    assert (reply.status_code, b'role="alert"' in reply.content, b"column_content" in reply.content) == (
        422,
        True,
        True,
    )
    run_jobs()
    assert alice.list_contents() == []
    assert browser.get(address).status_code == 200


def test_file_is_sealed_and_only_for_its_member(world: World, browser: Client, superuser: Superuser) -> None:
    address = upload_file(browser)
    for who, status in (("olivia", 404), ("charlie", 404), ("bob", 403)):
        other = signed_in(world.person(who))
        assert other.get(address).status_code == status
        assert other.post(address, COLUMNS).status_code == status
        assert other.post(f"{address}remove/").status_code == status
    (row,) = superuser().execute("SELECT sealed FROM vault_upload").fetchall()
    assert b"Ana takes the train." not in bytes(row[0])
    assert browser.post(f"{address}remove/").status_code == 303
    assert browser.get(address).status_code == 404
    with acting(world.alice.actor):
        entries = AuditEntry.objects.filter(object_type="upload").exclude(verb=Verb.ACCESS_DENIED)
        verbs = list(entries.order_by("id").values_list("verb", flat=True))
    assert verbs == [Verb.UPLOAD_CREATED, Verb.UPLOAD_REMOVED]


@pytest.mark.parametrize("who", ["bob", "charlie"])
def test_report_of_an_import_is_its_requesters(who: str, world: World, browser: Client) -> None:
    report = browser.post(upload_file(browser, jsonl(line(1)), "a.jsonl"))["Location"]
    assert signed_in(world.person(who)).get(report).status_code == {"bob": 403, "charlie": 404}[who]


def test_report_of_another_job_is_not_found(browser: Client, alice: Contract) -> None:
    alice.add("Ana takes the train.")
    job = alice.post("exports/", {}).json["job"]["id"]
    assert browser.get(f"/exchange/imports/{job}/").status_code == 404


def test_file_goes_after_a_day_and_a_fourth_one_replaces_the_first(world: World, browser: Client) -> None:
    first, *others = [upload_file(browser) for _ in range(4)]
    assert browser.get(first).status_code == 404
    run_jobs()
    assert {browser.get(other).status_code for other in others} == {200}
    with acting(world.alice.actor):
        due = OutboxEvent.objects.filter(topic=Topic.UPLOADS_DUE, done_at=None)
        assert due.count() == 4
        due.update(available_at=Now() - timedelta(seconds=1))
    run_jobs()
    assert {browser.get(other).status_code for other in others} == {404}


def test_file_goes_with_the_erasure_of_a_data_subject(world: World, browser: Client, olivia: Contract) -> None:
    address = upload_file(browser)
    subject = olivia.post("subjects/", {"reference": "Ana"}).json["id"]
    assert olivia.post(f"subjects/{subject}/erase/", {}).status == 202
    run_jobs()
    assert browser.get(address).status_code == 404


def test_rest_renames_namespaces_and_speakers_and_shows_what_would_come(alice: Contract) -> None:
    mapping = "columns=content:Aussage,speaker:Wer,namespace:Ort&namespaces=/old:/team/new&speakers=bo:Bo"
    tried = alice.raw(f"imports/?format=csv&dry_run=true&{mapping}", TABLE, content_type=FILE_TYPE).json
    assert (tried["namespaces"], tried["speakers"]) == ({"/old": 2, "/other": 1}, {"bo": 2, "ana": 1})
    assert tried["columns"]["content"] == "Aussage"
    assert [(sample["namespace"], sample["speaker"]) for sample in tried["samples"]] == [
        ("/team/new", "ana"),
        ("/team/new", "Bo"),
        ("/other", "Bo"),
    ]
    assert alice.raw(f"imports/?format=csv&{mapping}", TABLE, content_type=FILE_TYPE).status == 202
    run_jobs()
    assert sorted(alice.list_contents("namespace=/team/new")) == ["Ana takes the train.", "Bo likes tea."]


@each_case(
    ("asked", "name"),
    [
        ("format=csv&speakers=bo", "speakers"),
        ("format=csv&namespaces=/old:", "namespaces"),
        ("format=csv&columns=content:Aussage,namespace:Ort&namespaces=/old:x", "namespace"),
        ("format=memoryos&speakers=bo:Bo", "speakers"),
        ("format=csv&columns=content:Aussage&persona=%00", "persona"),
    ],
)
def test_rest_refuses_a_wrong_mapping(asked: str, name: str, alice: Contract) -> None:
    assert fields_at_fault(alice.raw(f"imports/?{asked}", TABLE, content_type=FILE_TYPE)) == {name}
    assert alice.list_contents() == []


def test_format_is_recognised_by_the_content_or_the_name_of_the_file(browser: Client) -> None:
    for name, content, words in (
        ("A.JSONL", jsonl(line(1)), "JSON Lines"),
        ("notes.md", b"# Travel\n\nAna takes the train.\n", "Markdown"),
        ("conversations.json", dumped(chatgpt_conversations()), "ChatGPT"),
        ("conversations.json", dumped(claude_conversations()), "Claude"),
    ):
        assert re.search(words, open_page(browser, upload_file(browser, content, name)))


def test_encrypted_pack_goes_from_one_browser_to_another(world: World, olivia: Contract, charlie: Contract) -> None:
    olivia.add("The heron nests by the mill.", namespace="/birds")
    sender, receiver = signed_in(world.olivia), signed_in(world.charlie)
    assert sender.post("/exchange/export/", {"namespace": "/birds"}).status_code == 303
    run_jobs()
    page = sender.get("/exchange/").content.decode()
    (path,) = re.findall(r'formaction="(/exchange/[0-9a-f-]{36}/mempack/)"', page)
    key = charlie.get("exports/key/").json["public_key"]
    reply: Any = sender.get(f"{path}?recipient={key}&part=1")

    async def read() -> bytes:
        return b"".join([block async for block in reply.streaming_content])

    content = async_to_sync(read)()
    assert b"heron" not in content
    assert not content.startswith(b"PK")
    refused = sender.post("/exchange/", {"format": "", "file": SimpleUploadedFile("a.mempack.sealed", content)})
    assert refused.status_code in range(400, 500)
    address = upload_file(receiver, content, "a.mempack.sealed")
    assert receiver.post(address, {}).status_code == 303
    run_jobs()
    assert charlie.list_contents() == ["The heron nests by the mill."]
