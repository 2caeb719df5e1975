"""The table of shapes: what clients send, where that was reported or published, and what each surface makes of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.surfaces import USER, Surface
from tests.factories import World
from tests.vault.reader.test_message_shapes import ANSWER, CALL, DUMP, IMAGE, ITEM, USE

HERON = {"role": "user", "content": "The heron nests by the mill."}
SAID_AT = "2026-05-02T20:00:00-05:00"
TOOL, TEXT, FOUND, EMPTY = "tool memory", "text", "found", "empty"
READ = "taken, states nothing"
WITHOUT_STATEMENT = {"MCP": READ}  # the tool reads every conversation
NONE = "–"  # a surface has no argument for it
NO_ARGUMENT = {"MCP": NONE}
OF_MEM0 = {"MCP": NONE, "MemOS": NONE}


@dataclass(frozen=True)
class Shape:
    """act: sends the shape and returns what became of it; expected: that, on all surfaces but those of `others`."""

    name: str
    source: str
    expected: str
    act: Callable[[World, Surface], str]
    others: dict[str, str] = field(default_factory=dict)

    def expect(self, surface: str) -> str:
        return self.others.get(surface, self.expected)


def _kinds(world: World, surface: Surface, messages: list[Any], **options: Any) -> str:
    """The kinds of the stored memories, as the REST API shows them."""
    status, reply = surface.add(world, messages, **options)
    if status not in {200, 201}:
        return f"{status}"
    rows = world.client("alice").get("memories/").json["results"]
    kinds = [TOOL if row["modality"] == "tool_call" else TEXT for row in reversed(rows)]
    skipped = reply.get("skipped") or (reply["data"].get("skipped") if isinstance(reply.get("data"), dict) else None)
    return (" and ".join(dict.fromkeys(kinds)) or READ) + (", message 1 named in `skipped`" if skipped else "")


def _add(*messages: Any, **options: Any) -> Callable[[World, Surface], str]:
    return lambda world, surface: _kinds(world, surface, list(messages), **options)


def _find(message: dict[str, Any], added: dict[str, Any], asked: dict[str, Any]) -> Callable[[World, Surface], str]:
    def act(world: World, surface: Surface) -> str:
        status, reply = surface.add(world, [dict(message)], **added)
        assert status in {200, 201}, reply
        return FOUND if surface.find(world, **asked) == [message["content"]] else EMPTY

    return act


def _timed(message: dict[str, Any], surface: Surface) -> dict[str, Any]:
    """A message with its time where the surface has one for a message."""
    names = {"REST": "timestamp", "MemOS": "chat_time", "MCP": "timestamp"}
    return {**message, names[surface.name]: SAID_AT} if surface.name in names else message


def _find_timed(**asked: Any) -> Callable[[World, Surface], str]:
    def act(world: World, surface: Surface) -> str:
        options = {"event_time": SAID_AT} if surface.name == "mem0" else {}
        return _find(_timed(HERON, surface), options, asked)(world, surface)

    return act


def _own(surface: Surface, options: dict[str, Any]) -> dict[str, Any]:
    """The options of an addition, but for MCP, whose tool always reads the messages."""
    return {} if surface.name == "MCP" else options


def _read_yesterday(world: World, surface: Surface) -> str:
    message = {"role": "user", "content": "Good evening! I bought a canoe yesterday."}
    options: dict[str, Any] = {"mode": "fine"} if surface.name == "MemOS" else {"infer": True}
    options |= {"event_time": SAID_AT} if surface.name == "mem0" else {}
    status, reply = surface.add(world, [_timed(message, surface)], **_own(surface, options))
    assert status in {200, 201}, reply
    rows = world.client("alice").get("memories/").json["results"]
    return next(str(row["event_time"])[:10] for row in rows if row["parents"])


def _search_newcomer(world: World, surface: Surface) -> str:
    return FOUND if surface.find(world, user="newcomer") else EMPTY


def _say_three_times(world: World, surface: Surface) -> str:
    options: dict[str, Any] = {"mode": "fine"} if surface.name == "MemOS" else {"infer": True}
    for _ in range(3):
        status, reply = surface.add(world, [dict(HERON)], **_own(surface, options))
        assert status in {200, 201}, reply
    rows = world.client("alice").get("memories/").json["results"]
    return f"{len(rows)} memory, {len(rows[0]['occasions'])} occasions"


SHAPES = (
    Shape("content null, with tool calls", "mem0 5067, hermes-agent 276, openai-python", TOOL, _add(DUMP)),
    Shape(
        "a tool call and the answer of its tool",
        "openai-python",
        "text and tool memory",
        _add(HERON, DUMP, {"role": "tool", "tool_call_id": CALL["id"], "content": "17 °C"}),
    ),
    Shape("an item of the responses API", "openai-python", TOOL, _add(ITEM)),
    Shape("parts: text and a picture", "mem0 4799, openai-python", TEXT, _add(
        {"role": "user", "content": [{"type": "text", "text": "Look."}, IMAGE]}), WITHOUT_STATEMENT),
    Shape("parts: tool_use and tool_result", "anthropic-sdk-python", "tool memory", _add(
        {"role": "assistant", "content": [USE]}, {"role": "user", "content": [ANSWER]})),
    Shape("role `developer`", "openai-python", TEXT, _add(
        {"role": "developer", "content": "Be short."}), WITHOUT_STATEMENT),
    Shape("a dump with `refusal`, `audio` and `annotations` null", "openai-python", TEXT, _add(
        {**DUMP, "content": "It rains.", "tool_calls": None}), WITHOUT_STATEMENT),
    Shape("a bad message among good ones", "every client", "text, message 1 named in `skipped`", _add(
        HERON, {"role": "owner", "content": "x"})),
    Shape("bad messages alone", "every client", "400", _add({"role": "owner", "content": "x"})),
    Shape("nulls and blanks of optional arguments", "xum 2887, gbrain 3850", TEXT, _add(HERON, run="", metadata=None)),
    Shape("`tags: [\"\"]`", "gbrain 3850", TEXT, _add(HERON, tags=[""]), NO_ARGUMENT),
    Shape("a user whose name is a UUID", "mem0 3675", FOUND, _find(HERON, {}, {"user": USER})),
    Shape("a user without memories", "every client", EMPTY, _search_newcomer),
    Shape("a run in another case", "hindsight 3675", EMPTY, _find(HERON, {"run": "Sales"}, {"run": "sales"})),
    Shape("a run in the same case", "hindsight 3675", FOUND, _find(HERON, {"run": "Sales"}, {"run": "Sales"})),
    Shape("any run", "mem0 docs/platform/features/v2-memory-filters.mdx", FOUND, _find(
        HERON, {"run": "Sales"}, {"any_run": True}), NO_ARGUMENT),
    Shape("any run, of a memory without one", "mem0 docs/platform/features/v2-memory-filters.mdx", EMPTY, _find(
        HERON, {}, {"any_run": True}), NO_ARGUMENT),
    Shape("a filter by the time that the client gave", "mem0 docs/platform/features/timestamp.mdx", FOUND, _find_timed(
        since="2026-05-01", until="2026-06-01")),
    Shape("a filter by the time of storing", "mem0 docs/platform/features/timestamp.mdx", EMPTY, _find_timed(
        since="2026-06-01")),
    Shape("`gte` on metadata", "docs/mem0.md", FOUND, _find(
        HERON, {"metadata": {"stars": 5}}, {"stars": 4}), NO_ARGUMENT),
    Shape("`gte` on metadata, of less", "docs/mem0.md", EMPTY, _find(
        HERON, {"metadata": {"stars": 3}}, {"stars": 4}), NO_ARGUMENT),
    Shape("all words of `keywords`", "mem0 docs/platform/features/v2-memory-filters.mdx", FOUND, _find(
        HERON, {}, {"words": "MILL heron"}), OF_MEM0),
    Shape("not all words of `keywords`", "mem0 docs/platform/features/v2-memory-filters.mdx", EMPTY, _find(
        HERON, {}, {"words": "heron hut"}), OF_MEM0),
    Shape("the same sentence three times", "mem0 1674", "1 memory, 3 occasions", _say_three_times),
    Shape("\"yesterday\" at 20:00 -05:00", "hermes-agent 46424, oh-my-pi 2363", "2026-05-01", _read_yesterday),
)  # fmt: skip
