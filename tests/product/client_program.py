"""MemOS's client as its package ships it. Prints what each call returned, as JSON.

The packages `memos` and `transformers` stand empty here: their own modules load language models, which no client needs.

usage: client_program.py FOLDER_OF_PACKAGES ADDRESS KEY
"""

import json
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import requests


def client_of(packages: str, address: str, key: str) -> Any:
    sys.path.append(packages)
    package, models = ModuleType("memos"), ModuleType("transformers")
    package.__path__ = [f"{packages}/memos"]
    vars(models)["DynamicCache"] = object
    sys.modules |= {"memos": package, "transformers": models}
    from memos.api.client import MemOSClient  # type: ignore[import-not-found]

    return MemOSClient(api_key=key, base_url=f"{address}/product")


def find_refusal(call: Callable[..., Any], *given: Any, **named: Any) -> tuple[int, str]:
    """The status and the message that a call is refused with."""
    try:
        call(*given, **named)
    except requests.HTTPError as error:
        if error.response is None:
            raise
        return error.response.status_code, error.response.json()["message"]
    raise AssertionError(f"{call} was not refused")


def count_requests(call: Callable[..., Any], *given: Any, **named: Any) -> tuple[int, Any]:
    """The number of requests of a call, and what it returned."""
    posted, post = [], requests.post

    def count(*args: Any, **options: Any) -> Any:
        posted.append(args)
        return post(*args, **options)

    requests.post = count
    try:
        returned = call(*given, **named)
        return len(posted), returned
    finally:
        requests.post = post


def main(client: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": "My sister Mia lives in Porto."}]
    added = client.add_message(said, user_id="iris", conversation_id="c1", tags=["family"], async_mode=False)
    (found,) = client.search_memory("Where does Mia live?", user_id="iris").memories
    client.update_memory(found.id, content="My sister Mia lives in Lisbon.")
    listed = client.get_memory(user_id="iris")
    detail = client.get_memory_by_id(found.id)
    status = client.get_task_status(added.task_id)
    feedback = client.add_feedback(user_id="iris", conversation_id="c1", feedback_content="Mia lives in Faro.")
    messages = client.get_message(user_id="iris", conversation_id="c1").messages
    chat = client.chat(user_id="iris", conversation_id="c1", query="Where does Mia live?")
    chunks = list(client.chat(user_id="iris", conversation_id="c1", query="Where does Mia live?", stream=True))
    refused = count_requests(client.create_knowledgebase, "books")
    deleted = client.delete_memory(memory_ids=[found.id])
    return {
        "added": added.success,
        "found": [found.memory_value, found.tags, found.conversation_id],
        "listed": [memory.memory_value for memory in listed.memories],
        "one": detail["data"]["memory_value"],
        "status": status.data.status,
        "feedback": feedback.success,
        "messages": [[message.role, message.content] for message in messages],
        "chat": chat.response,
        "chunks": [json.loads(chunk)["type"] for chunk in chunks],
        "refused": [refused[0], refused[1].code, refused[1].knowledgebase_id],
        "deleted": deleted.success,
        "left": len(client.get_memory(user_id="iris").memories),
        "refusals": [
            find_refusal(client.get_memory_by_id, found.id),
            find_refusal(client.update_memory, found.id, status="archived"),
        ],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(client_of(*sys.argv[1:]))) + "\n")
