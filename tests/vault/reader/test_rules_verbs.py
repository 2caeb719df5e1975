"""Tests of requests for operations on stored memories: their verb, topic and argument."""

from datetime import UTC, datetime

import pytest

from vault.reader.rules import Intent, memory_call, read_statements, read_verb

SAID_AT = datetime(2026, 11, 23, 12, tzinfo=UTC)
REQUESTS = [
    ("Archive my notes about the boiler", "archive", "boiler", ""),
    ("Please archive everything about the boiler.", "archive", "boiler", ""),
    ("could you shelve what I told you about my old flat?", "archive", "old flat", ""),
    ("Bring back my memories about Lisbon", "restore", "Lisbon", ""),
    ("restore everything about Lisbon from the archive", "restore", "Lisbon", ""),
    ("Freeze all notes about the contract", "freeze", "contract", ""),
    ("promote my notes on chess to long-term memory", "promote", "chess", ""),
    ("Merge my two notes about the garden into one", "fuse", "garden", ""),
    ("combine everything you know about Anna", "fuse", "Anna", ""),
    ("roll back my note about the rent", "rollback", "rent", ""),
    ("undo the last change to my note about the rent", "rollback", "rent", ""),
    ("Who has read my notes about the clinic?", "audit", "clinic", ""),
    ("audit everything about the clinic", "audit", "clinic", ""),
    ("tag my notes about the boiler as house", "tag", "boiler", "house"),
    ('Tag everything about the boiler with "house stuff"', "tag", "boiler", "house stuff"),
    ("add the tag house to my notes about the boiler", "tag", "boiler", "house"),
    ("update my note about the dentist to Dr Wu", "update", "dentist", "Dr Wu"),
    ("change my note about the dentist", "update", "dentist", ""),
    ("归档关于锅炉的记忆", "archive", "锅炉", ""),
    ("把关于锅炉的记忆都归档吧", "archive", "锅炉", ""),
    ("恢复关于里斯本的记忆", "restore", "里斯本", ""),
    ("冻结关于合同的记忆", "freeze", "合同", ""),
    ("把关于象棋的笔记提升为长期记忆", "promote", "象棋", ""),
    ("合并关于花园的笔记", "fuse", "花园", ""),
    ("回滚关于房租的记忆", "rollback", "房租", ""),
    ("谁看过我关于诊所的记录？", "audit", "诊所", ""),
    ("给关于锅炉的记忆打上标签家务", "tag", "锅炉", "家务"),
    ("把关于锅炉的记忆标记为家务", "tag", "锅炉", "家务"),
    ("把关于牙医的记忆改成吴医生", "update", "牙医", "吴医生"),
]
STATEMENTS = [
    "Archive the files by Friday.",
    "I merged my notes about the garden last night.",
    "We restore old chairs in the workshop.",
    "My sister promotes concerts in Leeds.",
    "我昨天把花园的笔记合并了。",
    "Who has read Dune?",
]


@pytest.mark.parametrize(("text", "verb", "query", "argument"), REQUESTS)
def test_a_request_is_read_in_both_languages(text: str, verb: str, query: str, argument: str) -> None:
    call = memory_call(text, said_at=SAID_AT)
    assert (call.intent, call.query, call.argument, call.is_operation) == (Intent(verb), query, argument, True)


@pytest.mark.parametrize("text", [text for text, *_ in REQUESTS])
def test_a_request_states_nothing(text: str) -> None:
    alone = read_statements("I live in Leeds.", speaker="user", said_at=SAID_AT)
    assert read_statements(f"{text}\nI live in Leeds.", speaker="user", said_at=SAID_AT) == alone


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_text_without_stored_memories_as_object_is_no_request(text: str) -> None:
    assert read_verb(text) is None
