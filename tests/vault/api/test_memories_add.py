"""POST memories/: one memory as `content`, or a conversation as `messages`."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings

from governance.database import acting
from governance.vocabulary import Scope
from tests.factories import World
from tests.vault.api.contract import Contract, contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.models import Cube, Namespace

LONGEST = settings.MAX_CONTENT_CHARACTERS
LATER = "2199-01-01T00:00:00Z"


def chat_message(role: str, content: str, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


def rows(world: World) -> int:
    """All cubes of acme, whoever may see them."""
    with acting(world.olivia.actor):
        return Cube.objects.count()


def test_what_was_sent_comes_back_word_for_word(alice: Contract) -> None:
    sent: dict[str, Any] = {
        "content": "  Caroline adopted a greyhound.\n",
        "title": "The dog",
        "tags": ["pets", "家庭"],
        "metadata": {"from": "a letter", "pages": [1, 2], "more": {"sure": True}},
        "session_id": "s-1",
        "task_id": "t-1",
        "event_time": "2026-05-01T12:00:00Z",
        "valid_from": "2026-05-01T00:00:00Z",
        "valid_to": LATER,
        "expires_at": LATER,
        "sensitivity": "confidential",
        "importance": 0.75,
        "semantic_type": "event",
        "subject": "customer-77",
    }
    memory = alice.add(**sent)
    subject = memory.pop("subject")
    assert subject["reference"] == sent.pop("subject")
    assert {name: memory[name] for name in sent} == sent
    assert memory["version"] == 1
    assert memory["state"] == "generated"
    assert memory["layer"] == "long_term"
    assert memory["language"] == "en"
    assert memory["source"] == "api"
    assert memory["pending_embedding"] is True
    assert memory["token_count"] > 0
    read = alice.get(f"memories/{memory['id']}/")
    assert read.json == {**memory, "subject": subject}


def test_the_defaults_are_the_principals_private_place_and_no_more(alice: Contract) -> None:
    memory = alice.add("Plain.")
    assert memory["namespace"]["path"] == "/users/alice"
    for name in ("persona", "subject", "session_id", "task_id", "event_time", "expires_at", "speaker", "position"):
        assert memory[name] is None
    assert memory["tags"] == []
    assert memory["metadata"] == {}


def test_it_answers_that_nothing_is_superseded_or_in_conflict(alice: Contract) -> None:
    reply = alice.post("memories/", {"content": "One."})
    assert reply.status == 201
    assert (reply.json["superseded"], reply.json["conflicts"]) == ([], [])


# Messages


def test_messages_are_stored_verbatim_in_order(alice: Contract) -> None:
    messages = [
        chat_message(
            "user", "I moved to Lisbon. I like it.", name="Ann", timestamp="2026-05-01T10:00:00Z", message_id="m1"
        ),
        chat_message("assistant", "Lovely!", message_id="m2"),
        chat_message("system", "Be kind.", timestamp="2026-05-02T10:00:00Z"),
        chat_message("tool", "17 °C", tool_call_id="call-1"),
    ]
    body = {"messages": messages, "infer": False, "session_id": "s", "event_time": "2020-01-01T00:00:00Z"}
    reply = alice.post("memories/", body)
    assert reply.status == 201
    got = reply.json["results"]
    assert [memory["content"] for memory in got] == [message["content"] for message in messages]
    assert [row["position"] for row in got] == [0, 1, 2, 3]
    assert [memory["speaker"] for memory in got] == ["Ann", "assistant", "system", "tool"]
    assert [row["message_id"] for row in got] == ["m1", "m2", None, None]
    assert [row["event_time"][:10] for row in got] == ["2026-05-01", "2020-01-01", "2026-05-02", "2020-01-01"]
    assert [row["modality"] for row in got] == ["text", "text", "text", "tool_call"]
    assert got[3]["semantic_type"] == "tool_trace"
    assert got[3]["metadata"] == {"tool_call_id": "call-1"}


def test_a_messages_metadata_stands_over_the_calls(alice: Contract) -> None:
    messages = [chat_message("user", "One.", metadata={"a": 1, "b": 1}), chat_message("user", "Two.")]
    reply = alice.post("memories/", {"messages": messages, "infer": False, "metadata": {"b": 2, "c": 2}})
    assert [row["metadata"] for row in reply.json["results"]] == [{"a": 1, "b": 1, "c": 2}, {"b": 2, "c": 2}]


def test_a_call_of_tools_is_a_memory_too(alice: Contract) -> None:
    calls = [{"id": "call-1", "function": {"name": "weather", "arguments": '{"city": "Lisbon"}'}}]
    messages = [chat_message("assistant", "", tool_calls=calls), chat_message("assistant", "I look.", tool_calls=calls)]
    silent, spoken, again = alice.post("memories/", {"messages": messages, "infer": False}).json["results"]
    assert silent["content"] == again["content"] == "weather(city=Lisbon)"
    assert [silent["modality"], spoken["modality"], again["modality"]] == ["tool_call", "text", "tool_call"]
    assert spoken["content"] == "I look."
    assert spoken["metadata"]["tool_calls"] == calls


def test_positions_go_on_where_the_session_was_left(alice: Contract) -> None:
    for expected in ([0, 1], [2, 3]):
        reply = alice.post(
            "memories/",
            {"messages": [chat_message("user", "A."), chat_message("user", "B.")], "infer": False, "session_id": "s"},
        )
        assert [row["position"] for row in reply.json["results"]] == expected
    other = alice.post("memories/", {"messages": [chat_message("user", "A.")], "infer": False, "session_id": "other"})
    assert other.json["results"][0]["position"] == 0


def test_equal_messages_are_all_stored(alice: Contract) -> None:
    messages = [chat_message("user", "Yes."), chat_message("user", "Yes."), chat_message("assistant", "Yes.")]
    for _ in range(2):
        reply = alice.post("memories/", {"messages": messages, "infer": False, "session_id": "s"})
        assert reply.status == 201
        assert not any("duplicate" in item for item in reply.json["results"])
    assert len(alice.list_contents()) == 6


def test_message_with_a_repeated_session_and_id_is_stored_once(alice: Contract) -> None:
    body = {"messages": [chat_message("user", "First.", message_id="m1")], "infer": False, "session_id": "s"}
    first = alice.post("memories/", body).json["results"][0]
    body["messages"].append(chat_message("user", "Second.", message_id="m2"))  # type: ignore[attr-defined]
    again = alice.post("memories/", body)
    assert again.status == 201
    assert [item.get("duplicate", False) for item in again.json["results"]] == [True, False]
    assert again.json["results"][0]["id"] == first["id"]
    assert [row["position"] for row in again.json["results"]] == [0, 1]
    third = alice.post("memories/", body)
    assert third.status == 200
    assert len(alice.list_contents()) == 2


def test_the_same_message_id_in_another_session_or_namespace_is_another_message(alice: Contract) -> None:
    for place in ({"session_id": "s"}, {"session_id": "s2"}, {"session_id": "s", "namespace": "/team"}, {}):
        body = {"messages": [chat_message("user", "Hello.", message_id="m1")], "infer": False, **place}
        assert alice.post("memories/", body).status == 201
    assert len(alice.list_contents()) == 4


def test_with_infer_statements_become_memories_of_their_own(alice: Contract) -> None:
    text = "I moved to Lisbon in 2021. My favourite colour is green. How are you?"
    reply = alice.post("memories/", {"messages": [chat_message("user", text, message_id="m")], "session_id": "s"})
    whole, *derived = reply.json["results"]
    assert whole["content"] == text
    assert whole["layer"] == "short_term"
    assert len(derived) == 2
    assert all(row["parents"] == [whole["id"]] for row in derived)
    assert all(memory["layer"] == "long_term" for memory in derived)
    assert any("Lisbon" in memory["content"] for memory in derived)
    assert (
        alice.post("memories/", {"messages": [chat_message("user", text, message_id="m")], "session_id": "s"}).status
        == 200
    )


def test_an_assistants_words_are_no_facts_about_anyone(alice: Contract) -> None:
    text = "I moved to Lisbon in 2021. My favourite colour is green."
    reply = alice.post("memories/", {"messages": [chat_message("assistant", text)]})
    assert (reply.status, reply.json["results"]) == (201, [])
    assert alice.list_contents("semantic_type=dialogue") == [text]


# Duplicates


def test_the_same_content_in_the_same_place_is_there_already(alice: Contract) -> None:
    first = alice.add("Green tea, please.")
    again = alice.post("memories/", {"content": "Green tea, please.", "tags": ["other"]})
    assert again.status == 200
    assert again.json["results"][0]["id"] == first["id"]
    assert again.json["results"][0]["duplicate"] is True
    assert again.json["results"][0]["tags"] == []


def test_the_same_content_in_another_form_of_unicode_is_there_already(alice: Contract) -> None:
    alice.add("Caf\u00e9")
    assert alice.post("memories/", {"content": "Cafe\u0301"}).status == 200


@pytest.mark.parametrize("other", [{"namespace": "/team"}, {"persona": "alice"}, {"allow_duplicates": True}])
def test_elsewhere_or_when_asked_for_it_is_another_memory(alice: Contract, other: dict[str, Any]) -> None:
    first = alice.add("Green tea, please.")
    second = alice.add("Green tea, please.", **other)
    assert first["id"] != second["id"]
    assert "duplicate" not in second


def test_a_deleted_memory_is_no_duplicate(alice: Contract) -> None:
    first = alice.add("Green tea, please.")
    assert alice.delete(f"memories/{first['id']}/").status == 204
    assert alice.add("Green tea, please.")["id"] != first["id"]


def test_a_duplicate_that_the_writer_may_not_read_is_not_shown(world: World, alice: Contract) -> None:
    """Two members may know the same; neither learns of it."""
    alice.add("The vault opens at nine.")
    olivia = contract(world, "olivia")
    assert olivia.post("memories/", {"content": "The vault opens at nine."}).status == 201


# How long it lives


def test_ttl_seconds_makes_an_expiry_by_the_databases_clock(alice: Contract) -> None:
    before = datetime.now(UTC)
    memory = alice.add("Soon gone.", ttl_seconds=3600)
    expires = datetime.fromisoformat(memory["expires_at"])
    assert timedelta(minutes=59) < expires - before < timedelta(minutes=61)


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"ttl_seconds": 60, "expires_at": LATER}, "ttl_seconds"),
    ({"ttl_seconds": 0}, "ttl_seconds"),
    ({"ttl_seconds": -1}, "ttl_seconds"),
    ({"ttl_seconds": 10**12}, "ttl_seconds"),
    ({"expires_at": "2001-01-01T00:00:00Z"}, "expires_at"),
    ({"expires_at": "tomorrow"}, "expires_at"),
    ({"valid_from": LATER, "valid_to": "2026-01-01T00:00:00Z"}, "valid_to"),
    ({"importance": 1.01}, "importance"),
    ({"importance": -0.01}, "importance"),
    ({"sensitivity": "secret"}, "sensitivity"),
    ({"semantic_type": "rumour"}, "semantic_type"),
    ({"persona": "nobody"}, "persona"),
    ({"persona": "bob"}, "persona"),
    ({"tags": "pets"}, "tags"),
    ({"tags": ["a", "b\x00"]}, "tags.1"),
    ({"tags": ["t"] * 51}, "tags"),
    ({"metadata": []}, "metadata"),
    ({"metadata": {"a": "x" * 128 * 1024}}, "metadata"),
    ({"metadata": {"a": "b\x00"}}, "metadata"),
    ({"metadata": {"\ud800": 1}}, "metadata"),
    ({"session_id": "s" * 201}, "session_id"),
    ({"title": "t" * 501}, "title"),
    ({"title": "\ud800"}, "title"),
    ({"speling": 1}, "speling"),
    ({"tenant": "other"}, "tenant"),
    ({"tenant_id": "other"}, "tenant_id"),
    ({"infer": "perhaps"}, "infer"),
    ({"messages": [{"role": "user", "content": "Both."}]}, "content"),
]


def test_a_bad_field_is_named_and_nothing_is_stored(world: World, alice: Contract) -> None:
    for fields, field in BAD_FIELDS:
        reply = alice.post("memories/", {"content": "Something.", **fields})
        assert fields_at_fault(reply) == {field}, fields
    assert rows(world) == 0


BLANKS: dict[str, Any] = {
    "namespace": "",
    "persona": " ",
    "session_id": "",
    "task_id": None,
    "tags": ["", "pets", None],
    "importance": None,
    "sensitivity": None,
    "metadata": None,
    "event_time": "",
    "ttl_seconds": None,
    "messages": [],
}


def test_blank_option_is_an_absent_one(alice: Contract) -> None:
    """xum issue 2887 and gbrain issue 3850: clients send nulls and blanks for what they have not."""
    stored = alice.add("The heron nests.", **BLANKS)
    assert stored == stored | {"persona": None, "session_id": None, "tags": ["pets"], "importance": 0.5, "metadata": {}}
    blank = {"namespaces": [""], "personas": [], "session_id": "", "layers": [None], "filters": None, "top_k": None}
    assert [hit["id"] for hit in alice.search("heron", **blank)] == [stored["id"]]
    listed = alice.get("memories/?persona=&namespace=&tags=&created_after=&filters=").json["results"]
    assert [memory["id"] for memory in listed] == [stored["id"]]


def test_content_that_cannot_be_stored_is_refused(world: World, alice: Contract) -> None:
    contents: list[Any] = ["", "   ", "\n\t", "a\x00b", "\ud800", "half a \udc00 pair", None, 7, ["text"]]
    for content in contents:
        assert fields_at_fault(alice.post("memories/", {"content": content})) == {"content"}, repr(content)
    assert rows(world) == 0


def test_the_longest_content_fits_and_one_more_is_too_large(world: World, alice: Contract) -> None:
    longest = "记" * LONGEST
    assert alice.add(longest)["content"] == longest
    assert alice.post("memories/", {"content": longest + "忆"}).status == 413
    assert alice.post("memories/", {"messages": [chat_message("user", longest + "忆")]}).status == 413
    body = {"messages": [chat_message("user", "Fine."), chat_message("user", longest + "忆")]}
    assert [skipped["index"] for skipped in alice.post("memories/", body).json["skipped"]] == [1]
    assert alice.post("memories/bulk/", {"items": [{"content": "Fine."}, {"content": longest + "忆"}]}).status == 413
    assert rows(world) == 2


def test_characters_of_all_unicode_planes_are_stored(alice: Contract) -> None:
    odd = "😀 \u202eevil\u202c \ufeff \u0000".replace("\u0000", "") + "\u0001\u001f e\u0301"
    assert alice.add(odd)["content"] == odd


def test_a_call_takes_a_thousand_messages_and_no_more(world: World, alice: Contract) -> None:
    messages = [chat_message("user", f"Message {number}.") for number in range(settings.MAX_ITEMS_PER_CALL)]
    more = [*messages, chat_message("user", "One more.")]
    assert fields_at_fault(alice.post("memories/", {"messages": more, "infer": False})) == {"messages"}
    assert rows(world) == 0
    reply = alice.post("memories/", {"messages": messages, "infer": False, "session_id": "s"})
    assert reply.status == 201
    assert [row["position"] for row in reply.json["results"]] == list(range(settings.MAX_ITEMS_PER_CALL))


BAD_MESSAGES: list[tuple[dict[str, Any], str]] = [
    ({"role": "user"}, "messages.1.content"),
    ({"content": "x"}, "messages.1.role"),
    ({"role": "owner", "content": "x"}, "messages.1.role"),
    ({"role": "user", "content": ""}, "messages.1.content"),
    ({"role": "user", "content": "x", "timestamp": "noon"}, "messages.1.timestamp"),
    ({"role": "user", "content": "x", "speaker": "Ann"}, "messages.1.speaker"),
    ({"role": "user", "content": "x", "metadata": 1}, "messages.1.metadata"),
    ({"role": "assistant", "content": "", "tool_calls": ["\ud800"]}, "messages.1.tool_calls"),
    ({"role": "assistant", "content": "", "tool_calls": ["a\x00"]}, "messages.1.tool_calls"),
    ({"role": "assistant", "content": "x", "tool_calls": ["x" * 140_000]}, "messages.1.tool_calls"),
]


def test_a_bad_message_is_named_by_its_place_and_the_others_are_stored(world: World, alice: Contract) -> None:
    for number, (message, field) in enumerate(BAD_MESSAGES, start=1):
        body = {"messages": [chat_message("user", "Fine."), message], "infer": False}
        reply = alice.post("memories/", body)
        (skipped,) = reply.json["skipped"]
        assert (reply.status, skipped["index"]) == (201, 1)
        assert {error["field"] for error in skipped["errors"]} == {field}, message
        assert rows(world) == number
    promised = alice.post("memories/?async=true", {"messages": [chat_message("user", "Fine."), BAD_MESSAGES[0][0]]})
    assert [skipped["index"] for skipped in promised.json["skipped"]] == [1]


def test_call_with_bad_messages_only_is_refused(world: World, alice: Contract) -> None:
    messages = [message for message, _ in BAD_MESSAGES]
    named = {field.replace(".1.", f".{place}.") for place, (_, field) in enumerate(BAD_MESSAGES)}
    assert fields_at_fault(alice.post("memories/", {"messages": messages})) == named
    body = {"items": [{"messages": [chat_message("user", "Fine."), messages[0]]}]}
    assert fields_at_fault(alice.post("memories/bulk/", body)) == {"items.0.messages.1.content"}
    assert rows(world) == 0


def test_metadata_of_100_kb_are_stored_and_filters_read_their_short_values(alice: Contract) -> None:
    """A value of a store of LangGraph: files of agents are longer than 16 KB (deepagents, backends/store.py)."""
    metadata = {"path": "/notes.md", "value": {"content": [f"Line {number} of a file." for number in range(4_000)]}}
    memory = alice.add("Notes.", metadata=metadata)
    assert [hit["id"] for hit in alice.search("notes", filters={"metadata.path": "/notes.md"})] == [memory["id"]]
    assert alice.get(f"memories/{memory['id']}/").json["metadata"] == metadata


def test_a_body_without_a_memory_is_refused(alice: Contract) -> None:
    bodies: list[dict[str, Any]] = [{}, {"messages": []}, {"infer": True}]
    for body in bodies:
        assert alice.post("memories/", body).status == 400, body


def test_a_body_that_is_no_object_is_refused(alice: Contract) -> None:
    for body in (b"[]", b'"text"', b"3", b"null", b'[{"content": "x"}]', b""):
        assert alice.raw("memories/", body).status == 400, body


# Where it goes


def test_a_shared_path_is_made_on_demand(world: World, alice: Contract, olivia: Contract) -> None:
    first = alice.add("Ours.", namespace="/team/notes-1")
    second = olivia.add("Ours too.", namespace="/team/notes-1")
    assert first["namespace"] == second["namespace"]
    assert first["namespace"]["path"] == "/team/notes-1"


def test_a_part_of_ones_own_home_is_private(alice: Contract, bob: Contract) -> None:
    memory = alice.add("Mine.", namespace="/users/alice/diary")
    assert bob.get(f"memories/{memory['id']}/").status == 404


def test_the_home_may_be_named_before_it_exists(alice: Contract) -> None:
    assert alice.add("Mine.", namespace="/users/alice")["namespace"] == alice.add("Also mine.")["namespace"]


def test_nobody_writes_in_anothers_home(world: World, alice: Contract, olivia: Contract) -> None:
    olivia.add("Here I live.")
    for path in ("/users/olivia", "/users/olivia/x", "/users/nobody", "/users/alice2", "/users"):
        assert alice.post("memories/", {"content": "Intruder.", "namespace": path}).status == 403, path
    assert rows(world) == 1


def test_a_path_that_is_none_is_refused(world: World, alice: Contract) -> None:
    paths: list[Any] = ["team", "/", "/team/", "//team", "/te am", "/team/../x", "/..", "/a\x00", "/a?b", 7]
    for path in [*paths, "/" + "x" * 200]:
        reply = alice.post("memories/", {"content": "Lost.", "namespace": path})
        assert fields_at_fault(reply) == {"namespace"}, path
    assert rows(world) == 0


def test_paths_may_be_chinese(alice: Contract) -> None:
    assert alice.add("会议记录", namespace="/团队/笔记")["namespace"]["path"] == "/团队/笔记"


def test_a_persona_is_named_by_id_or_name(alice: Contract) -> None:
    mine = alice.get("me/").json["personas"][0]
    by_name = alice.add("One.", persona="alice")
    by_id = alice.add("Two.", persona=mine["id"])
    assert by_name["persona"] == by_id["persona"] == {"id": mine["id"], "name": "alice"}


def test_a_subject_is_made_once_for_each_reference(alice: Contract) -> None:
    subjects = [alice.add(text, subject=who)["subject"] for text, who in (("A.", "c-1"), ("B.", "c-1"), ("C.", "c-2"))]
    assert subjects[0] == subjects[1]
    assert subjects[0]["id"] != subjects[2]["id"]
    assert subjects[2]["reference"] == "c-2"


# Who may


@pytest.mark.parametrize("name", ["bob", "ada"])
def test_who_may_only_read_leaves_no_trace(world: World, name: str) -> None:
    client = contract(world, name)
    for address, body in (
        ("memories/", {"content": "No."}),
        ("memories/?async=true", {"content": "No."}),
        ("memories/", {"content": "No.", "namespace": "/team"}),
        ("memories/bulk/", {"items": [{"content": "No."}]}),
    ):
        assert client.post(address, body).status == 403
    assert rows(world) == 0
    with acting(world.olivia.actor):
        assert not Namespace.objects.exists()


def test_a_key_without_the_scope_may_not(world: World) -> None:
    for scopes in ([Scope.MEMORIES_READ], [Scope.CHAT], [Scope.ADMIN]):
        assert contract(world, "alice", *scopes).post("memories/", {"content": "No."}).status == 403
    assert contract(world, "alice", Scope.MEMORIES_WRITE).post("memories/", {"content": "Yes."}).status == 201


# Bulk


def test_bulk_answers_with_the_index_of_each_item(alice: Contract) -> None:
    items = [
        {"content": "One."},
        {"messages": [chat_message("user", "Two."), chat_message("user", "Three.")], "infer": False, "session_id": "s"},
        {"content": "Four.", "namespace": "/team"},
    ]
    reply = alice.post("memories/bulk/", {"items": items})
    assert reply.status == 201
    assert [row["index"] for row in reply.json["results"]] == [0, 1, 1, 2]
    assert [row["memory"]["content"] for row in reply.json["results"]] == ["One.", "Two.", "Three.", "Four."]


def test_bulk_knows_what_is_there_and_what_it_repeats(alice: Contract) -> None:
    alice.add("Known.")
    reply = alice.post("memories/bulk/", {"items": [{"content": "Known."}, {"content": "New."}, {"content": "New."}]})
    assert reply.status == 201
    assert [row["memory"].get("duplicate", False) for row in reply.json["results"]] == [True, False, True]
    assert alice.post("memories/bulk/", {"items": [{"content": "Known."}]}).status == 200


USED = {"access_count", "last_accessed_at"}  # reading counts


def test_what_is_answered_to_a_write_is_what_is_read_then(olivia: Contract) -> None:
    persona = olivia.post("personas/", {"name": "Guide"}).json["name"]
    olivia.add("Known before.", title="t")
    items: list[dict[str, Any]] = [
        {"content": "Plain."},
        {"content": "Known before."},
        {
            "content": 'About "Ann" \\ 茶, in May.',
            "subject": "user-7",
            "persona": persona,
            "title": "Tea",
            "tags": ["b", "a"],
        },
        {
            "messages": [chat_message("user", "My name is Ann. I moved to Lyon."), chat_message("assistant", "Noted.")],
            "session_id": "s",
            "task_id": "t",
            "metadata": {"a": [1, 2.5, None, {"b": "c"}]},
        },
        {
            "content": "Until then.",
            "ttl_seconds": 3600,
            "importance": 1,
            "event_time": "2026-03-01T10:00:00.123456+08:00",
            "valid_from": "2026-01-01T00:00:00Z",
            "valid_to": "2027-01-01T00:00:00Z",
            "namespace": "/team",
            "sensitivity": "confidential",
        },
    ]
    reply = olivia.post("memories/bulk/", {"items": items})
    assert reply.status == 201
    memories = [row["memory"] for row in reply.json["results"]]
    assert any(memory["parents"] for memory in memories)
    for memory in memories:
        read = olivia.get(f"memories/{memory['id']}/").json
        known = {name: value for name, value in memory.items() if name not in {*USED, "duplicate"}}
        assert known == {name: value for name, value in read.items() if name not in USED}


def test_what_comes_under_a_hold_as_it_is_written_says_so(olivia: Contract) -> None:
    made = olivia.post("holds/", {"reason": "A case.", "filters": {"tags": "case"}})
    assert made.status == 201, made.json
    items = [{"content": "Of the case.", "tags": ["case"]}, {"content": "Of nothing."}]
    reply = olivia.post("memories/bulk/", {"items": items})
    assert [row["memory"]["held"] for row in reply.json["results"]] == [True, False]


BAD_ITEMS: list[tuple[dict[str, Any], str]] = [
    ({"content": ""}, "items.2.content"),
    ({"content": "x", "speling": 1}, "items.2.speling"),
    ({"content": "x", "ttl_seconds": 0}, "items.2.ttl_seconds"),
    ({"messages": [{"role": "user", "content": "\x00"}]}, "items.2.messages.0.content"),
    ({"content": "x", "namespace": "no path"}, "items.2.namespace"),
    ({"content": "x", "persona": "nobody"}, "items.2.persona"),
    ({"content": "x", "expires_at": "2001-01-01T00:00:00Z"}, "items.2.expires_at"),
]


def test_one_bad_item_stops_all_and_is_named(world: World, alice: Contract) -> None:
    for bad, field in BAD_ITEMS:
        items = [{"content": "One."}, {"content": "Two.", "namespace": "/team"}, bad]
        assert fields_at_fault(alice.post("memories/bulk/", {"items": items})) == {field}, bad
    assert rows(world) == 0


def test_one_forbidden_item_stops_all(world: World, alice: Contract) -> None:
    items = [{"content": "One."}, {"content": "Two.", "namespace": "/users/olivia"}]
    assert alice.post("memories/bulk/", {"items": items}).status == 403
    assert rows(world) == 0


def test_bulk_counts_messages_too(world: World, alice: Contract) -> None:
    message = chat_message("user", "x")
    items = [{"messages": [message] * 600}, {"messages": [message] * 401}]
    assert fields_at_fault(alice.post("memories/bulk/", {"items": items})) == {"items"}
    assert fields_at_fault(alice.post("memories/bulk/", {"items": [{"content": "x"}] * 1001})) == {"items"}
    assert fields_at_fault(alice.post("memories/bulk/", {"items": []})) == {"items"}
    assert rows(world) == 0


def test_a_dry_run_of_bulk_checks_all_and_writes_nothing(world: World, alice: Contract) -> None:
    alice.add("Known.")
    items = [{"content": "Known."}, {"content": "New.", "namespace": "/new", "subject": "c-9"}]
    reply = alice.post("memories/bulk/?dry_run=true", {"items": items}, idempotency_key="k")
    assert (reply.status, reply.json) == (200, {"dry_run": True, "count": 1, "ids": []})
    bad = alice.post("memories/bulk/?dry_run=true", {"items": [*items, {"content": "x", "persona": "nobody"}]})
    assert fields_at_fault(bad) == {"items.2.persona"}
    assert contract(world, "bob").post("memories/bulk/?dry_run=true", {"items": items}).status == 403
    assert alice.list_contents() == ["Known."]
    with acting(world.olivia.actor):
        assert not Namespace.objects.filter(path="/new").exists()
    assert alice.post("memories/bulk/", {"items": items}, idempotency_key="k").status == 201


# Who may write, but not read


def test_a_writer_sees_of_what_was_there_only_what_they_sent(world: World, alice: Contract) -> None:
    known = {"tags": ["t"], "metadata": {"m": 1}, "title": "T", "subject": "c-1", "importance": 0.9, "session_id": "s"}
    memory = alice.add("Known.", namespace="/team", **known)
    alice.get(f"memories/{memory['id']}/")
    run_jobs()
    writer = contract(world, "alice", Scope.MEMORIES_WRITE)
    body = {"content": "Known.", "namespace": "/team"}
    bulk = writer.post("memories/bulk/", {"items": [body]}).json["results"][0]["memory"]
    shown = writer.post("memories/", body).json["results"][0]
    assert shown == bulk
    told = ("id", "content", "namespace", "version", "created_at", "updated_at")
    assert {name: shown[name] for name in told} == {name: memory[name] for name in told}
    assert shown["duplicate"] is True
    hidden = (
        "tags",
        "keywords",
        "parents",
        "metadata",
        "title",
        "subject",
        "persona",
        "session_id",
        "last_accessed_at",
    )
    assert not any(shown[name] for name in hidden)
    assert (shown["access_count"], shown["heat"], shown["importance"]) == (0, 0.0, 0.5)
    assert shown["trust"] == shown["token_count"] == 0


def test_writer_does_not_learn_the_content_of_a_stored_message(world: World, alice: Contract) -> None:
    body = {"messages": [chat_message("user", "A secret.", message_id="m1")], "infer": False, "session_id": "s"}
    alice.post("memories/", body)
    body["messages"] = [chat_message("user", "A guess.", message_id="m1")]
    writer = contract(world, "alice", Scope.MEMORIES_WRITE)
    (shown,) = writer.post("memories/", body).json["results"]
    assert (shown["content"], shown["duplicate"]) == ("A guess.", True)


def test_day_of_a_statement_is_that_of_the_offset(alice: Contract) -> None:
    message = {"role": "user", "content": "Hello! I saw a kestrel yesterday.", "timestamp": "2026-05-02T20:00:00-05:00"}
    reply = alice.post("memories/", {"messages": [message], "session_id": "walk"})
    times = [row["event_time"] for row in reply.json["results"]]
    assert times == ["2026-05-03T01:00:00Z", "2026-05-01T00:00:00Z"]
