"""Files as other products let people download them: what comes, what stays behind and why, and under which names."""

import io
from datetime import UTC, datetime

import pytest

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, fields_at_fault
from tests.vault.exchange import foreign_files
from tests.vault.exchange.foreign_files import CLAUDE_CHAT_LEFT_OUT, FILES, ForeignFile, dumped, file_named, zip_of
from tests.vault.exchange.test_exchange import FILE_TYPE, export_file, import_file
from tests.vault.exchange.test_uploads import upload_file
from vault.exchange.formats import read_items, recognise_format
from vault.exchange.items import Item, LeftOut, LeftOutReport
from vault.vocabulary import ImportFormat, SemanticType

LATIN = (("Ça va déjà à Évian", "latin-1"), ("naïve façade, señor", "latin-1"), ("安娜坐火车去上班", "gb18030"))


def read(content: bytes, form: str, columns: dict[str, str] | None = None) -> tuple[list[Item], LeftOutReport]:
    parts = list(read_items(io.BytesIO(content), ImportFormat(form), columns))
    return [part for part in parts if isinstance(part, Item)], LeftOutReport.of(
        part for part in parts if isinstance(part, LeftOut)
    )


def by_content(name: str) -> dict[str, Item]:
    file = file_named(name)
    return {item.versions[-1].content: item for item in read(file.content, file.form)[0]}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_downloaded_file_is_recognised_and_read_with_a_report(file: ForeignFile) -> None:
    assert recognise_format(io.BytesIO(file.content)) == file.form
    items, left_out = read(file.content, file.form)
    assert sorted(item.versions[-1].content for item in items) == sorted(file.contents)
    assert left_out.counts == file.left_out
    assert "sk-planted" not in repr([(item.versions, item.speaker) for item in items])


def test_custom_instructions_are_a_profile_without_a_speaker() -> None:
    found = by_content("ChatGPT's zip in shards")
    profile, style = found["I nest by the mill."], found["Short sentences, please."]
    assert (profile.speaker, profile.session_id, profile.versions[-1].semantic_type) == ("", "", SemanticType.PROFILE)
    assert style.versions[-1].semantic_type == SemanticType.PREFERENCE
    spoken = found["Where do herons sleep?"]
    assert (spoken.speaker, spoken.session_id, spoken.versions[-1].metadata) == (
        "user",
        "c1",
        {"chatgpt_part": "voice"},
    )


def test_messages_of_claude_have_their_chat_speaker_and_time() -> None:
    found = by_content("Claude's zip")
    asked = found["How old is the mill?"]
    assert (asked.speaker, asked.session_id, asked.message_id) == ("user", "chat-1", "m1")
    assert found["It is from 1780."].speaker == "assistant"
    assert asked.said_at == datetime(2026, 5, 1, 8, 0, 0, 123456, UTC)
    assert found["The mill is from 1780."].versions[0].semantic_type == SemanticType.DOCUMENT
    work = found["Ana restores mills."].versions[0]
    assert (work.title, work.semantic_type) == ("Work context", SemanticType.PROFILE)
    assert found["Wheels first."].versions[0].title == "Mills"


def test_export_of_claude_named_as_chatgpt_is_refused_in_words(alice: Contract) -> None:
    """P0luz/Ombre-Brain pull request 101: Claude's conversations.json has the name of ChatGPT's."""
    content = dumped(foreign_files.claude_conversations())
    refused = alice.raw("imports/?format=chatgpt", content, content_type=FILE_TYPE)
    assert (refused.status, "export of Claude" in str(refused.json)) == (400, True)
    tried = alice.raw("imports/?dry_run=true", content, content_type=FILE_TYPE)
    assert (tried.json["format"], tried.json["new"], tried.json["reasons"]) == (
        "claude",
        4,
        CLAUDE_CHAT_LEFT_OUT,
    )


def test_answers_of_gemini_are_text_with_the_time_of_their_prompt() -> None:
    found = by_content("Gemini's Takeout with MyActivity.html")
    times = {item.speaker: item.said_at for item in found.values()}
    assert times == dict.fromkeys(("user", "assistant"), datetime(2026, 5, 1, 8, tzinfo=UTC))


def test_memories_of_mem0_keep_their_times_and_expiry() -> None:
    found = by_content("mem0's get_all")
    train, tea, cat = (found[text] for text in ("Ana takes the train.", "Bo likes tea.", "Carla has a cat."))
    assert (train.persona, train.session_id, train.expires_at) == ("ana-42", "run-7", datetime(2100, 1, 1, tzinfo=UTC))
    assert train.versions[0].metadata == {"source": "chat", "agent_id": "travel-bot"}
    assert (tea.said_at, cat.said_at and cat.said_at.timestamp()) == (
        datetime(2026, 5, 1, 8, tzinfo=UTC),
        1777622400.123,
    )


def test_import_of_mem0_is_stored_for_the_persona_of_its_user(alice: Contract) -> None:
    content = file_named("mem0's get_all").content
    tried = alice.raw("imports/?dry_run=true", content, content_type=FILE_TYPE).json
    assert (tried["personas"], tried["new"], tried["expired"]) == ({"ana-42": 2, "bo": 1}, 3, 1)
    counts = import_file(alice, content, format="mem0", personas="bo:Bo B")["counts"]
    assert (counts["stored"], counts["expired"], counts["personas_missing"]) == (3, 1, 0)
    assert alice.list_contents("persona=ana-42") == ["Ana takes the train."]
    assert alice.list_contents("persona=Bo%20B") == ["Bo likes tea."]
    (memory,) = alice.get("memories/?persona=ana-42").json["results"]
    assert memory["expires_at"].startswith("2100-01-01T00:00:00")


def test_archived_memory_of_openmemory_stays_archived(alice: Contract) -> None:
    content = file_named("OpenMemory's backup").content
    assert import_file(alice, content)["counts"]["stored"] == 2
    assert alice.list_contents("persona=ana") == ["Ana takes the train."]
    assert alice.list_contents("persona=ana&state=archived") == ["Bo likes tea."]
    assert import_file(alice, content)["counts"]["present"] == 2


def test_cubes_of_an_archive_are_named_by_their_folders() -> None:
    found = by_content("MemOS archive of two cubes")
    assert found["Ana takes the train."].versions[0].metadata["memos_cube"] == "one"
    coffee = found["Bo likes coffee."]
    assert (coffee.versions[0].metadata["memos_cube"], [origin.id for origin in coffee.made_from]) == ("two", ["t2"])


def test_fact_of_graphiti_is_valid_as_long_as_its_edge() -> None:
    fact = by_content("Graphiti's episodes, edges and nodes")["Ana lives in Ulm."].versions[0]
    assert (fact.valid_from, fact.valid_to) == (
        datetime(2026, 5, 1, 8, tzinfo=UTC),
        datetime(2026, 6, 1, 8, tzinfo=UTC),
    )


def test_note_has_the_tags_dates_and_links_of_its_properties() -> None:
    found = by_content("a folder of Obsidian and basic-memory")
    first = found["Herons stand by [[The Mill|the mill]]. #wading"].versions[0]
    assert (first.title, first.tags, first.event_time) == (
        "Heron Notes",
        ("bird", "mill", "wading"),
        datetime(2026, 5, 1, 8, tzinfo=UTC),
    )
    assert first.metadata == {
        "type": "note",
        "permalink": "birds/heron-notes",
        "note": "Heron Notes",
        "links": ["The Mill"],
    }
    trains = found["Ana takes the train."].versions[0]
    assert (trains.title, trains.tags, trains.metadata["aliases"]) == ("Trains", ("travel", "rail"), ["Trips"])


@each_case("name, content", foreign_files.TABLES)
def test_table_of_any_encoding_loses_a_bad_cell_and_keeps_its_row(name: str, content: bytes) -> None:
    columns = dict(pair.split(":") for pair in foreign_files.TABLE_COLUMNS.split(","))
    items, left_out = read(content, "csv", columns)
    assert [item.versions[0].content for item in items] == ["Ana fährt mit dem Zug.", "Bo mag Tee."], name
    assert [item.versions[0].event_time for item in items] == [datetime(2026, 5, 1, tzinfo=UTC), None]
    assert (items[0].versions[0].tags, left_out.places) == (("Reise",), [LeftOut("event_time of row 2", "bad_time")])


@each_case("text, encoding", LATIN)
def test_encoding_of_a_table_is_detected_from_its_bytes(text: str, encoding: str) -> None:
    items, _ = read(f"content\r\n{text!s}\r\n".replace(",", "").encode(encoding), "csv")
    assert [item.versions[0].content for item in items] == [text.replace(",", "")]


@each_case(
    "written, day",
    [
        ("46143", "2026-05-01 00:00"),  # Excel's days
        ("46143.354166666664", "2026-05-01 08:30"),
        ("1777622400", "2026-05-01 08:00"),
        ("1777622400000", "2026-05-01 08:00"),
        ("5/1/2026", "2026-05-01 00:00"),
        ("31/5/2026", "2026-05-31 00:00"),
        ("5/1/2026 8:30 AM", "2026-05-01 08:30"),
        ("2026/5/1 8:30", "2026-05-01 08:30"),
        ("2026年5月1日", "2026-05-01 00:00"),
        ("2026-05-01T10:30:00+02:00", "2026-05-01 08:30"),
    ],
)
def test_dates_that_spreadsheets_write_are_read(written: str, day: str) -> None:
    (item,), _ = read(f"content,date\nx,{written}\n".encode(), "csv")
    moment = item.versions[0].event_time
    assert moment is not None
    assert moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M") == day


def test_row_with_too_many_or_too_few_cells_keeps_the_others() -> None:
    long = "y" * 300
    items, left_out = read(f"content,title,speaker\na\nb,B,Ana,more\nc,C,{long}\n".encode(), "csv")
    assert [(item.versions[0].content, item.versions[0].title, item.speaker) for item in items] == [
        ("a", "", ""),
        ("b", "B", "Ana"),
        ("c", "C", ""),
    ]
    assert left_out.places == [LeftOut("cell 4 of row 2", "malformed"), LeftOut("speaker of row 3", "too_long")]


def test_large_pictures_beside_conversations_are_not_read() -> None:
    """MonkeyRun-com/monkeyrun-open-brain issue 2: 1.8 GB of audio and pictures around the conversations."""
    chats = foreign_files.chatgpt_conversations()
    content = zip_of({"conversations-000.json": chats, **{f"image-{at}.png": b"\x00" * 3_000_000 for at in range(30)}})
    items, left_out = read(content, "chatgpt")
    assert (len(items), left_out.counts["not_text"]) == (len(foreign_files.CHATGPT_CONTENTS), 30)


def test_list_is_read_element_by_element_across_blocks() -> None:
    """An element that a block cuts, a number at the end of a block, and what is no JSON at all."""
    records = [
        {"memory": f"Heron {at} " + "x" * 900, "namespace": ["a"], "key": str(at), "value": at} for at in range(4_000)
    ]
    chat = foreign_files.conversation(
        7,
        *(
            foreign_files.message(
                f"m{at}", f"m{at - 1}" if at else "root-7", "user", foreign_files.words(record["memory"])
            )
            for at, record in enumerate(records)
        ),
    )
    items, left_out = read(dumped([chat, chat]), "chatgpt")
    assert (len(items), left_out.counts) == (4_000, {"repeated": 4_000})


@pytest.mark.parametrize("file", FILES[:3], ids=lambda file: file.name)
def test_same_file_again_changes_nothing_and_says_so(file: ForeignFile, alice: Contract) -> None:
    first = import_file(alice, file.content)["counts"]
    assert first["stored"] == len(file.contents)
    before = export_file(alice)
    again = import_file(alice, file.content)["counts"]
    assert (again["stored"], again["updated"], again["present"]) == (0, 0, len(file.contents))
    assert count_lines(export_file(alice)) == count_lines(before)


def count_lines(file: bytes) -> int:
    return len(file.splitlines())


def test_file_of_no_format_is_asked_for_its_format(alice: Contract, world: World) -> None:
    assert fields_at_fault(alice.raw("imports/", b"plain words", content_type=FILE_TYPE)) == {"format"}
    page = signed_in(world.alice).get(
        upload_file(signed_in(world.alice), file_named("Claude's zip").content, "data-2026.zip")
    )
    assert "Claude export" in page.content.decode()
