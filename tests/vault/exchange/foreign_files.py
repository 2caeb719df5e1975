"""Files of other products in the shape in which they are downloaded, each made by a script from published code.

Every file names its source. `contents` is what an import stores, `left_out` what it counts by reason.
"""

import gzip
import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

WAV = b"RIFF\x00\x00\x00\x00WAVE"
ACCOUNT = "7d0f1f0e-0000-4000-8000-000000000001"
ROOT = "00000000-0000-4000-8000-000000000000"  # of Claude's messages


@dataclass(frozen=True)
class ForeignFile:
    """A file and its report. source: project and file, or issue, that shows the shape."""

    name: str
    source: str
    form: str
    content: bytes = field(repr=False)
    contents: tuple[str, ...]
    left_out: dict[str, int] = field(default_factory=dict)


def zip_of(files: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name, content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False))
    return buffer.getvalue()


def dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


# ChatGPT


def message(key: str, parent: str | None, role: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
    body = {
        "id": key,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": 1777622400.123,
        "update_time": None,
        "content": content,
        "status": "finished_successfully",
        "end_turn": None,
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
        "channel": None,
        **more,
    }
    return {"id": key, "message": body, "parent": parent, "children": []}


def words(*parts: Any, kind: str = "text") -> dict[str, Any]:
    return {"content_type": kind, "parts": list(parts)}


def conversation(number: int, *nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    root: dict[str, Any] = {"id": f"root-{number}", "message": None, "parent": None, "children": []}
    return {
        "title": f"Chat {number}",
        "create_time": 1777622400.0,
        "update_time": 1777622500.0,
        "mapping": {node["id"]: node for node in (root, *nodes)},
        "moderation_results": [],
        "current_node": nodes[-1]["id"],
        "conversation_id": f"c{number}",
        "id": f"c{number}",
        "default_model_slug": "gpt-5",
        "is_archived": False,
        "is_do_not_remember": False,
        **more,
    }


def chatgpt_conversations() -> list[dict[str, Any]]:
    hidden = {"is_visually_hidden_from_conversation": True}
    profile = {
        "content_type": "user_editable_context",
        "user_profile": "The user provided the following information about themselves:\n```I nest by the mill.```",
        "user_instructions": "The user provided the additional info about how they would like you to respond:\n"
        "```Short sentences, please.```",
    }
    told = {"about_user_message": "I nest by the mill.", "about_model_message": "Short sentences, please."}
    marked = {"user_context_message_data": told, "is_user_system_message": True, **hidden}
    said = {"content_type": "audio_transcription", "text": "Where do herons sleep?", "direction": "in"}
    audio = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_1", "format": "wav"}
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_2", "width": 1}
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "c"}]}
    call = {"content_type": "code", "language": "unknown", "text": '{"search": "bus"}'}
    first = conversation(
        0,
        message("sys", "root-0", "system", words(""), metadata=hidden),
        message("ctx", "sys", "user", profile, metadata=marked),
        message("old", "ctx", "user", words("Which buss?")),
        message("ask", "ctx", "user", words("Which bus goes to the mill?")),
        message("think", "ask", "assistant", thoughts),
        message("call", "think", "assistant", call, recipient="web"),
        message("tool", "call", "tool", {"content_type": "execution_output", "text": "Bus 7"}),
        message("ans", "tool", "assistant", words("Bus 7.")),
    )
    spoken = conversation(
        1,
        message("ctx2", "root-1", "user", profile, metadata=marked),
        message("voice", "ctx2", "user", words(said, audio, kind="multimodal_text")),
        message("reply", "voice", "assistant", words({**said, "text": "In trees.", "direction": "out"}, audio)),
        message("pic", "reply", "user", words(picture, "What bird is this?", kind="multimodal_text")),
        message("only", "pic", "user", words(picture, kind="multimodal_text")),
        message("hide", "only", "user", words("Continue."), metadata=hidden),
    )
    secret = conversation(2, message("s1", "root-2", "user", words("Forget me.")), is_do_not_remember=True)
    return [first, spoken, secret]


CHATGPT_CONTENTS = (
    "Bus 7.",
    "I nest by the mill.",
    "In trees.",
    "Short sentences, please.",
    "What bird is this?",
    "Where do herons sleep?",
    "Which bus goes to the mill?",
)
CHATGPT_LEFT_OUT = {
    "do_not_remember": 1,
    "hidden": 1,
    "no_words": 1,
    "other_branch": 1,
    "other_role": 2,
    "reasoning": 1,
    "repeated": 2,
    "tool_call": 1,
}


def chatgpt_zip() -> bytes:
    first, *others = chatgpt_conversations()
    return zip_of(
        {
            "conversations-000.json": [first],
            "conversations-001.json": others,
            "user.json": {"id": "user-1", "email": "ana@example.org"},
            "user_settings.json": {},
            "chat.html": b"<html>",
            "c1/audio/file_1-0.wav": WAV,
        }
    )


# Claude


def claude_message(key: str, parent: str, sender: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    return {
        "uuid": key,
        "text": "\n".join(texts),
        "content": list(blocks),
        "sender": sender,
        "created_at": "2026-05-01T08:00:00.123456Z",
        "updated_at": "2026-05-01T08:00:00.123456Z",
        "attachments": [],
        "files": [],
        "parent_message_uuid": parent,
        **more,
    }


def block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "start_timestamp": None, "stop_timestamp": None, "citations": []}


def claude_conversations() -> list[dict[str, Any]]:
    pasted = {
        "file_name": "paste.txt",
        "file_size": 27,
        "file_type": "txt",
        "extracted_content": "The mill is from 1780.",
    }
    chat = {
        "uuid": "chat-1",
        "name": "The mill",
        "summary": "",
        "created_at": "2026-05-01T08:00:00.000000Z",
        "updated_at": "2026-05-01T08:05:00.000000Z",
        "account": {"uuid": ACCOUNT},
        "chat_messages": [
            claude_message("m1", ROOT, "human", block("How old is the mill?"), attachments=[pasted]),
            claude_message(
                "m2",
                "m1",
                "assistant",
                {"type": "thinking", "thinking": "Look it up."},
                {"type": "tool_use", "name": "web_search", "input": {}},
                {"type": "tool_result", "content": [block("1780")]},
                block("It is from 1780."),
            ),
            claude_message("m3", "m2", "human", block("Thank yuo.")),
            claude_message("m4", "m2", "human", block("Thank you.")),
            claude_message("m5", "m4", "human", files=[{"file_uuid": "f", "file_name": "mill.png"}]),
        ],
    }
    return [chat, {**chat, "uuid": "chat-2", "name": "", "chat_messages": []}]


def claude_zip() -> bytes:
    project = {
        "uuid": "p1",
        "name": "Mills",
        "description": "Mills of the valley.",
        "is_private": True,
        "is_starter_project": False,
        "prompt_template": "",
        "created_at": "2026-05-01T08:00:00.000000+00:00",
        "updated_at": "2026-05-01T08:00:00.000000+00:00",
        "creator": {"uuid": ACCOUNT, "full_name": "Ana"},
        "docs": [
            {"uuid": "d1", "filename": "a.md", "content": "Six mills stand.", "created_at": "2026-05-01T08:00:00Z"}
        ],
    }
    memory = "**Work context**\n\nAna restores mills.\n\n**Personal context**\n\nAna lives in Ulm."
    memories = [{"conversations_memory": memory, "project_memories": {"p1": "Wheels first."}, "account_uuid": ACCOUNT}]
    return zip_of(
        {
            "users.json": [{"uuid": ACCOUNT, "full_name": "Ana", "email_address": "ana@example.org"}],
            "projects.json": [project, {**project, "uuid": "p2", "is_starter_project": True, "docs": []}],
            "memories.json": memories,
            "conversations.json": claude_conversations(),
        }
    )


CLAUDE_CHAT = ("How old is the mill?", "It is from 1780.", "Thank you.", "The mill is from 1780.")
CLAUDE_CHAT_LEFT_OUT = {"empty": 1, "no_words": 1, "other_branch": 1, "reasoning": 1, "tool_call": 2}


# Gemini


def gemini_records() -> list[dict[str, Any]]:
    common = {"header": "Gemini Apps", "products": ["Gemini Apps"], "activityControls": ["Gemini Apps Activity"]}
    answer = "<p>Bus <b>7</b> &amp; 8.</p><ul><li>daily</li></ul>"
    return [
        {**common, "title": "Prompted Which bus goes to the mill?", "time": "2026-05-01T08:00:00.123Z",
         "safeHtmlItem": [{"html": answer}]},
        {**common, "title": "Created Gemini Canvas titled Mill", "time": "2026-05-01T08:01:00.000Z"},
        {**common, "title": "Eingabe: Wie alt?", "time": "2026-05-01T08:02:00.000Z",
         "safeHtmlItem": [{"html": "<p>Alt.</p>"}]},
        {"header": "Search", "title": "Searched for mills", "time": "2026-05-01T08:03:00.000Z", "products": ["Search"]},
    ]  # fmt: skip


GEMINI_HTML = """<html><head><style>.a{}</style></head><body><div class="mdl-grid">
<div class="outer-cell mdl-cell mdl-cell--12-col mdl-shadow--2dp"><div class="mdl-grid">
<div class="header-cell mdl-cell mdl-cell--12-col"><p class="mdl-typography--title">Gemini Apps<br></p></div>
<div class="content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1">Prompted\u00a0Which bus goes to the mill?<br>May 1, 2026, 10:00:00\u202fAM GMT+02:00<br><p>Bus 7.</p></div>
<div class="content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1 mdl-typography--text-right"></div>
<div class="content-cell mdl-cell mdl-cell--12-col mdl-typography--caption"><b>Products:</b><br>&emsp;Gemini Apps<br></div>
</div></div></div></body></html>"""  # noqa: E501


# mem0, OpenMemory


MEM0 = {
    "results": [
        {
            "id": "5f4a1f52-0b1e-4a4b-9a4d-0d6f6a4f1c01",
            "memory": "Ana takes the train.",
            "user_id": "ana-42",
            "agent_id": "travel-bot",
            "run_id": "run-7",
            "metadata": {"source": "chat"},
            "categories": ["travel"],
            "expiration_date": "2099-12-31",
            "created_at": "2026-05-01T08:00:00-07:00",
            "updated_at": None,
            "hash": "0b1e",
        },
        {"id": "m2", "memory": "Bo likes tea.", "user_id": "bo", "created_at": 1777622400, "metadata": None},
        {"id": "m3", "memory": "Carla has a cat.", "created_at": 1777622400123},
        {"id": "m4", "memory": "A ticket of yesterday.", "user_id": "ana-42", "expiration_date": "2020-01-01"},
    ],
    "relations": [],
}


def openmemory_zip() -> bytes:
    row: dict[str, Any] = {
        "id": "o1",
        "user_id": "u-1",
        "app_id": "a-1",
        "content": "Ana takes the train.",
        "metadata": {},
        "state": "active",
        "created_at": "2026-05-01T08:00:00+00:00",
        "updated_at": "2026-05-01T08:00:00+00:00",
        "archived_at": None,
        "deleted_at": None,
        "category_ids": ["k-1"],
    }
    rows = [
        row,
        {**row, "id": "o2", "content": "Bo likes tea.", "state": "archived", "category_ids": []},
        {**row, "id": "o3", "content": "Gone.", "state": "deleted", "deleted_at": row["created_at"]},
    ]
    document = {
        "user": {"id": "u-1", "user_id": "ana", "name": "Ana", "email": None, "metadata": {}},
        "apps": [{"id": "a-1", "owner_id": "u-1", "name": "cursor"}],
        "categories": [{"id": "k-1", "name": "travel", "description": None}],
        "memories": rows,
        "memory_categories": [{"memory_id": "o1", "category_id": "k-1"}],
        "status_history": [],
        "access_controls": [],
        "export_meta": {"version": "1"},
    }
    return zip_of({"memories.json": document, "memories.jsonl.gz": gzip.compress(dumped({"id": "o1"}))})


# MemOS


def general_rows() -> list[dict[str, Any]]:
    memory = {"id": "5f4a1f52-0b1e-4a4b-9a4d-0d6f6a4f1c02", "memory": "Ana takes the train."}
    stated = {"user_id": "ana", "session_id": "s1", "status": "activated", "type": "fact", "source": "conversation",
              "tags": ["rail"], "updated_at": "2026-05-01T08:00:00"}  # fmt: skip
    return [
        {"id": memory["id"], "vector": [0.1, 0.2], "payload": {**memory, "metadata": stated}},
        {"id": "g2", "vector": [0.1], "payload": {"memory": "Old.", "metadata": {**stated, "status": "archived"}}},
    ]


def tree_nodes() -> dict[str, Any]:
    shared = {"status": "activated", "memory_type": "LongTermMemory", "sources": [], "embedding": [0.1], "usage": []}
    nodes = [
        {"id": "t1", "memory": "Bo likes coffee.", "metadata": {**shared, "key": "Drinks", "tags": ["drink"]}},
        {"id": "t2", "memory": "Bo drank two cups.", "metadata": {**shared, "created_at": "2026-05-01T08:00:00"}},
    ]
    edges = [{"source": "t2", "target": "t1", "type": "MERGED_TO"}]
    return {"nodes": nodes, "edges": edges, "total_nodes": 2, "total_edges": 1}


def memos_archive() -> bytes:
    """Two cubes in one zip."""
    return zip_of(
        {
            "cubes/one/config.json": {"api_key": "sk-planted"},
            "cubes/one/textual_memory.json": general_rows(),
            "cubes/two/config.json": {},
            "cubes/two/textual_memory.json": tree_nodes(),
            "cubes/two/activation_memory.pickle": b"\x80\x04.",
        }
    )


# Graphs, agents, stores


MCP_GRAPH = b"\n".join(
    dumped(line)
    for line in (
        {"type": "entity", "name": "Ana_Ulm", "entityType": "person", "observations": ["Takes the train", "Has a cat"]},
        {"type": "entity", "name": "Mill", "entityType": "place", "observations": []},
        {"type": "relation", "from": "Ana_Ulm", "to": "Mill", "relationType": "lives_near"},
    )
)


def letta_agent() -> dict[str, Any]:
    spoken = json.dumps({"type": "user_message", "message": "I take the train.", "time": "2026-05-01 08:00:00 AM"})
    beat = json.dumps({"type": "heartbeat", "reason": "Function call failed"})
    sent = {
        "id": "c",
        "type": "function",
        "function": {"name": "send_message", "arguments": '{"message": "Which one?"}'},
    }
    shared = {"agent_id": "agent-0", "model": "m", "tool_calls": None, "created_at": "2026-05-01T08:00:00Z"}
    messages = [
        {"id": "message-0", "role": "system", "content": [{"type": "text", "text": "You are Letta."}], **shared},
        {"id": "message-1", "role": "user", "content": [{"type": "text", "text": spoken}], **shared},
        {"id": "message-2", "role": "assistant", "content": [{"type": "text", "text": "Ask."}],
         **{**shared, "tool_calls": [sent]}},
        {"id": "message-3", "role": "tool", "content": [{"type": "text", "text": "{}"}], **shared},
        {"id": "message-4", "role": "user", "content": [{"type": "text", "text": beat}], **shared},
        {"id": "message-5", "role": "assistant", "content": [{"type": "text", "text": "The 8:10."}], **shared},
    ]  # fmt: skip
    agent = {"id": "agent-0", "name": "Guide", "block_ids": ["block-0"], "in_context_message_ids": ["message-1"],
             "messages": messages, "tool_exec_environment_variables": {"KEY": "sk-planted"}}  # fmt: skip
    blocks = [{"id": "block-0", "value": "Ana lives in Ulm.", "limit": 5000, "label": "human", "metadata": {}}]
    return {
        "agents": [agent],
        "groups": [],
        "blocks": blocks,
        "files": [],
        "sources": [],
        "tools": [],
        "mcp_servers": [],
    }


LETTA_LEGACY = {
    "agent_type": "memgpt_agent",
    "core_memory": [{"label": "human", "value": "Ana lives in Ulm.", "limit": 5000}],
    "messages": [{"role": "user", "text": "I take the train.", "created_at": "2026-05-01T08:00:00Z"}],
    "in_context_message_indices": [0],
}

GRAPHITI = {
    "episodes": [
        {
            "uuid": "e1",
            "name": "chat",
            "group_id": "ana",
            "source": "message",
            "source_description": "chat",
            "content": "Ana: I moved to Ulm.",
            "valid_at": "2026-05-01T08:00:00Z",
            "created_at": "2026-05-02T08:00:00Z",
            "entity_edges": ["f1"],
        }
    ],
    "edges": [
        {
            "uuid": "f1",
            "name": "LIVES_IN",
            "fact": "Ana lives in Ulm.",
            "source_node_uuid": "n1",
            "target_node_uuid": "n2",
            "episodes": ["e1"],
            "created_at": "2026-05-02T08:00:00Z",
            "valid_at": "2026-05-01T08:00:00Z",
            "invalid_at": "2026-06-01T08:00:00Z",
            "expired_at": None,
        }
    ],
    "nodes": [{"uuid": "n1", "name": "Ana", "labels": ["Entity"], "summary": "Ana is a miller."}],
}

LANGGRAPH = {
    "items": [
        {
            "namespace": ["memories", "ana"],
            "key": "k1",
            "value": {"kind": "Memory", "content": {"content": "Ana takes the train."}},
            "created_at": "2026-05-01T08:00:00.000000+00:00",
            "updated_at": "2026-05-01T08:00:00.000000+00:00",
        },
        {"namespace": ["memories", "ana"], "key": "k2", "value": {"text": "Ana has a cat."}},
        {"namespace": ["profile"], "key": "k3", "value": {"city": "Ulm"}},
    ]
}


# Notes


BASIC_NOTE = """---
title: Heron Notes
type: note
permalink: birds/heron-notes
tags:
- bird
- '#mill'
created: 2026-05-01 08:00
---

# Heron Notes

Herons stand by [[The Mill|the mill]]. #wading

## Observations
- [habit] Fishes at dawn #morning (seen twice)

## Relations
- lives_near [[The Mill]]
"""
OBSIDIAN_NOTE = "---\ntags: [travel, rail]\ndate: 2026-05-02\naliases:\n  - Trips\n---\nAna takes the train.\n"


def notes_zip() -> bytes:
    return zip_of(
        {
            "vault/birds/Heron Notes.md": BASIC_NOTE.encode(),
            "vault/Trains.md": OBSIDIAN_NOTE.encode(),
            "vault/.obsidian/app.json": b"{}",
            "vault/mill.png": b"\x89PNG",
        }
    )


# Tables


TABLE_ROWS = [
    ("Inhalt", "Datum", "Stichworte"),
    ("Ana fährt mit dem Zug.", "01.05.2026", "Reise"),
    ("Bo mag Tee.", "bald", ""),
]
CHINESE_ROWS = [("content", "date"), ("安娜坐火车去上班。", "2026/5/1 8:30"), ("博喜欢喝茶。", "2026/5/2 9:00")]


def table(rows: Sequence[tuple[str, ...]], separator: str) -> str:
    return "".join(separator.join(row) + "\r\n" for row in rows)


TABLES = (
    ("semicolons in UTF-8 with a byte order mark", table(TABLE_ROWS, ";").encode("utf-8-sig")),
    ("tabs in UTF-16", table(TABLE_ROWS, "\t").encode("utf-16")),
    ("semicolons in Latin-1", table(TABLE_ROWS, ";").encode("latin-1")),
    ("commas after Excel's own heading", b"sep=,\r\n" + table(TABLE_ROWS, ",").encode()),
)
TABLE_COLUMNS = "content:Inhalt,event_time:Datum,tags:Stichworte"

FILES = (
    ForeignFile(
        "ChatGPT's zip in shards",
        "MonkeyRun-com/monkeyrun-open-brain issue 2, HKUDS/DeepTutor pull request 1408",
        "chatgpt",
        chatgpt_zip(),
        CHATGPT_CONTENTS,
        {**CHATGPT_LEFT_OUT, "not_text": 4},
    ),
    ForeignFile(
        "ChatGPT's conversations.json",
        "tutti-os/tutti issue 1270",
        "chatgpt",
        dumped(chatgpt_conversations()),
        CHATGPT_CONTENTS,
        CHATGPT_LEFT_OUT,
    ),
    ForeignFile(
        "Claude's conversations.json",
        "P0luz/Ombre-Brain pull request 101, anthropics/claude-code issue 40411",
        "claude",
        dumped(claude_conversations()),
        CLAUDE_CHAT,
        CLAUDE_CHAT_LEFT_OUT,
    ),
    ForeignFile(
        "Claude's zip",
        "Superkikim/nexus-ai-chat-importer issue 22, NousResearch/hermes-agent pull request 28041",
        "claude",
        claude_zip(),
        (
            *CLAUDE_CHAT,
            "Ana restores mills.",
            "Ana lives in Ulm.",
            "Wheels first.",
            "Mills of the valley.",
            "Six mills stand.",
        ),
        {**CLAUDE_CHAT_LEFT_OUT, "account": 1, "sample": 1},
    ),
    ForeignFile(
        "Gemini's MyActivity.json",
        "osaurus-ai/osaurus pull request 2217",
        "gemini",
        dumped(gemini_records()),
        ("Which bus goes to the mill?", "Bus 7 & 8.\ndaily", "Eingabe: Wie alt?", "Alt."),
        {"other_activity": 2},
    ),
    ForeignFile(
        "Gemini's Takeout with MyActivity.html",
        "stefanoviel/search-history-analysis src/extract_from_gemini_chat.py",
        "gemini",
        zip_of(
            {
                "Takeout/My Activity/Gemini Apps/MyActivity.html": GEMINI_HTML.encode(),
                "Takeout/archive_browser.html": b"<html>",
            }
        ),
        ("Which bus goes to the mill?", "Bus 7."),
        {"not_text": 1},
    ),
    ForeignFile(
        "mem0's get_all",
        "mem0ai/mem0 mem0/memory/main.py and mem0/client/main.py",
        "mem0",
        dumped(MEM0),
        ("Ana takes the train.", "Bo likes tea.", "Carla has a cat.", "A ticket of yesterday."),
    ),
    ForeignFile(
        "OpenMemory's backup",
        "mem0ai/mem0 openmemory/api/app/routers/backup.py",
        "openmemory",
        openmemory_zip(),
        ("Ana takes the train.", "Bo likes tea."),
        {"deleted": 1, "repeated": 1},
    ),
    ForeignFile(
        "MemOS general_text rows",
        "MemTensor/MemOS src/memos/vec_dbs/item.py, examples/data/mem_cube_2",
        "memos",
        dumped(general_rows()),
        ("Ana takes the train.",),
        {"archived": 1},
    ),
    ForeignFile(
        "MemOS archive of two cubes",
        "MemTensor/MemOS src/memos/mem_cube/general.py",
        "memos",
        memos_archive(),
        ("Ana takes the train.", "Bo likes coffee.", "Bo drank two cups."),
        {"archived": 1, "configuration": 2, "not_text": 1},
    ),
    ForeignFile(
        "the MCP memory server's graph",
        "modelcontextprotocol/servers src/memory/index.ts",
        "mcp_memory",
        MCP_GRAPH,
        ("Takes the train", "Has a cat", "Ana_Ulm lives near Mill"),
        {"empty": 1},
    ),
    ForeignFile(
        "a Letta agent file",
        "letta-ai/letta letta/schemas/agent_file.py",
        "letta",
        dumped(letta_agent()),
        ("Ana lives in Ulm.", "I take the train.", "Which one?", "The 8:10."),
        {"other_role": 3},
    ),
    ForeignFile(
        "an older Letta agent file",
        "letta-ai/agent-file README",
        "letta",
        dumped(LETTA_LEGACY),
        ("Ana lives in Ulm.", "I take the train."),
    ),
    ForeignFile(
        "Graphiti's episodes, edges and nodes",
        "getzep/graphiti graphiti_core/nodes.py and edges.py",
        "graphiti",
        dumped(GRAPHITI),
        ("Ana: I moved to Ulm.", "Ana lives in Ulm.", "Ana is a miller."),
    ),
    ForeignFile(
        "items of a LangGraph store",
        "langchain-ai/langgraph libs/checkpoint/langgraph/store/base, langchain-ai/langmem",
        "langgraph",
        dumped(LANGGRAPH),
        ("Ana takes the train.", "Ana has a cat.", '{"city": "Ulm"}'),
    ),
    ForeignFile(
        "a folder of Obsidian and basic-memory",
        "basicmachines-co/basic-memory docs, Obsidian help: properties",
        "markdown",
        notes_zip(),
        (
            "Herons stand by [[The Mill|the mill]]. #wading",
            "- [habit] Fishes at dawn #morning (seen twice)",
            "- lives_near [[The Mill]]",
            "Ana takes the train.",
        ),
        {"other_file": 2},
    ),
)


def file_named(name: str) -> ForeignFile:
    return next(file for file in FILES if file.name == name)
