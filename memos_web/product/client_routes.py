"""Routes of MemOS's client beside those of memories: messages, status, feedback and chat, and those without an equal.

The client tries three times whatever is no success with the data that it expects (src/memos/api/client.py of
MemTensor/MemOS). So a refusal for good is a 200 whose `code` is 501, whose data is empty, and whose message says why.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response

from memos_web.inside import Query
from memos_web.product.translation import message_detail, rename_fields, text_of
from memos_web.protocols import Answer, Call, Json, NotTranslated, memories_add, persona_ensure, read_whole_number

MOST_MESSAGES = 200
REFUSED: dict[str, tuple[Json | list[Json], str]] = {
    "/create/knowledgebase": ({"id": ""}, "Send its files to the imports of MemOS Web, into a namespace."),
    "/delete/knowledgebase": ({"success": False}, "Delete the namespace in MemOS Web."),
    "/add/knowledgebase-file": ([], "Send files to the imports of MemOS Web."),
    "/delete/knowledgebase-file": ({"success": False}, "Undo the import in MemOS Web."),
    "/get/knowledgebase-file": ({"file_detail_list": []}, "Imports are listed by MemOS Web."),
    "/extract/memory": ({}, "Add the messages: what they state is read from them."),
    "/rerank": ({}, "A search ranks memories by itself."),
    "/bind/profile_template": ({}, "Attributes of a persona have no template."),
    "/edit/profile": ({}, "Change the persona in MemOS Web."),
    "/delete/profile": ({}, "Delete the persona in MemOS Web."),
}
# Sent by the client whether or not its caller names them: a chat finds and keeps by itself, with the model's settings.
WITHOUT_EFFECT = frozenset(
    {"async_mode", "allow_public", "include_preference", "include_tool_memory", "use_mem_os_cube", "source"}
    | {"memory_limit_number", "preference_limit_number", "tool_memory_limit_number", "relativity"}
    | {"max_tokens", "temperature", "top_p"}
)
OF_CHAT = frozenset({"user_id", "conversation_id", "query", "stream", "add_message_on_answer"})
OF_FEEDBACK = frozenset({"user_id", "conversation_id", "feedback_content", "feedback_time", "agent_id", "app_id"})


async def get_messages(call: Call) -> Json:
    """The messages of a user's conversation, oldest first."""
    body = rename_fields(call.body)
    size = read_whole_number(body, "message_limit_number", MOST_MESSAGES, MOST_MESSAGES)
    parts: list[Json] = [{"dialogue_only": {"in": [True, False]}}, {"persona": text_of(body, "user_id")}]
    if body.get("session_id"):
        parts.append({"session_id": body["session_id"]})
    query: Query = {"filters": json.dumps({"AND": parts}), "page_size": size}
    found = await call.rest.call("GET", "memories/", query=query)
    rows = [message_detail(row) for row in reversed(found["results"]) if not row["parents"]]
    return _reply({"message_detail_list": rows})


async def get_status(call: Call) -> Json:
    """The status of an addition, which ends with its call: its task is its first memory."""
    task_id = text_of(call.body, "task_id")
    await call.rest.call("GET", call.memory_path(task_id))
    return _reply({"task_id": task_id, "status": "completed"})


async def add_feedback(call: Call) -> Json:
    """A user's correction, which is a message of the conversation: what it states ends what was stated before."""
    _refuse_others(call.body, OF_FEEDBACK)
    content = text_of(call.body, "feedback_content")
    message = {"role": "user", "content": content, "timestamp": call.body.get("feedback_time")}
    asked = {
        "messages": [message],
        "persona": call.body.get("user_id"),
        "session_id": call.body.get("conversation_id"),
        "metadata": {name: call.body[name] for name in ("agent_id", "app_id") if call.body.get(name)},
    }
    stored = (await memories_add(call.rest, asked))["results"]
    return _reply({"success": True, "task_id": stored[0]["id"] if stored else "", "status": "completed"})


async def chat(call: Call) -> Json | Response:
    """A turn of the conversation that bears the client's name for it, made when it is needed."""
    _refuse_others(call.body, OF_CHAT)
    user, name = text_of(call.body, "user_id"), text_of(call.body, "conversation_id")
    conversation_id = await _ensure_conversation(call, await persona_ensure(call.rest, user), name)
    asked = {"content": text_of(call.body, "query")}
    turn = await call.rest.call("POST", f"conversations/{conversation_id}/turns/", body=asked)
    answer = turn["content"] or ""
    return _stream(answer) if call.body.get("stream") else _reply({"response": answer})


def _refuse_route(path: str) -> Answer:
    data, advice = REFUSED[path]

    async def answer(call: Call) -> Json:
        return {"code": 501, "message": f"{path} of MemOS has no equal here. {advice}", "data": data}

    return answer


ROUTES: list[tuple[str, str, Callable[[Call], Awaitable[Any]]]] = [
    ("POST", "/get/message", get_messages),
    ("POST", "/get/status", get_status),
    ("POST", "/add/feedback", add_feedback),
    ("POST", "/chat", chat),
    *(("POST", path, _refuse_route(path)) for path in REFUSED),
]


async def _ensure_conversation(call: Call, persona: str, name: str) -> str:
    """The id of the caller's conversation of this persona with this title."""
    address: str | None = "conversations/"
    while address:
        page = await call.rest.call("GET", address)
        for row in page["results"]:
            if row["title"] == name and (row["persona"] or {}).get("id") == persona:
                return str(row["id"])
        address = page["next"]
    return str((await call.rest.call("POST", "conversations/", body={"title": name, "persona": persona}))["id"])


def _stream(answer: str) -> Response:
    """An answer as the events of MemOS's own server."""
    events = [{"type": "text", "data": answer}, {"type": "end"}]
    lines = "".join(f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events)
    return Response(lines, media_type="text/event-stream")


def _refuse_others(body: Json, known: frozenset[str]) -> None:
    """Refuse options that would be ignored, unless they ask for what is done anyway. Raises NotTranslated."""
    unknown = sorted(name for name, value in body.items() if value and name not in known | WITHOUT_EFFECT)
    if unknown:
        raise NotTranslated(f"`{unknown[0]}` has no equal here. Known are {', '.join(sorted(known))}.")


def _reply(data: Json) -> Json:
    return {"code": 200, "message": "ok", "data": data}
