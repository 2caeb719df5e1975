"""Conversations that ChatGPT, Claude and Gemini export: each message that somebody wrote becomes a memory. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from html.parser import HTMLParser
from typing import Any

from governance.errors import Invalid
from vault.exchange.archives import Document, Entries, short_text, text_item, unfit_entry
from vault.exchange.items import Item, Unfit
from vault.vocabulary import SemanticType

SPEAKERS = ("user", "assistant")
UNSPOKEN = {
    "thoughts": "reasoning",
    "reasoning_recap": "reasoning",
    "model_editable_context": "hidden",
    "system_error": "other_role",
}
ABOUT = (  # custom instructions of ChatGPT: field of the message's metadata, of its content, and type
    ("about_user_message", "user_profile", SemanticType.PROFILE),
    ("about_model_message", "user_instructions", SemanticType.PREFERENCE),
)
SENDERS = {"human": "user", "user": "user", "assistant": "assistant"}
CLAUDE_STEPS = {"thinking": "reasoning", "tool_use": "tool_call", "tool_result": "tool_call"}
NOBODY = "00000000-0000-4000-8000-000000000000"  # the parent of Claude's first messages
PROMPTS = ("Prompted ", "Asked ", "Said ", "Answered ", "Branched ")
GEMINI = ("gemini", "bard")
BREAKS = frozenset({"br", "p", "li", "div", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "table"})
SILENT_TAGS = frozenset({"style", "script"})
TAKEOUT_TIMES = ("%b %d, %Y, %I:%M:%S %p", "%d %b %Y, %H:%M:%S")


# ChatGPT


def is_chatgpt_list(name: str) -> bool:
    """Return whether a file of the export has conversations: `conversations.json`, or `conversations-000.json`."""
    stem, _, ending = name.lower().rpartition(".")
    return ending == "json" and (stem == "conversations" or stem.removeprefix("conversations-").isdecimal())


def chatgpt_entries(documents: Sequence[Document]) -> Entries:
    """Messages of the person and the assistant, on the branch of each conversation that was shown last."""
    if not any(is_chatgpt_list(document.last_name) or not document.name for document in documents):
        raise Invalid("The zip holds no conversations.json.")
    for document in documents:
        if document.name and not is_chatgpt_list(document.last_name):
            yield document.skip("not_text")
            continue
        for number, conversation in enumerate(document.elements(), 1):
            if isinstance(conversation, dict) and "chat_messages" in conversation:
                raise Invalid("This is an export of Claude. Choose that format.")
            yield from _chatgpt_conversation(f"conversation {number}{document.place}", conversation)


def _chatgpt_conversation(place: str, conversation: Any) -> Entries:
    mapping = conversation.get("mapping") if isinstance(conversation, dict) else None
    if not isinstance(mapping, dict):
        yield place, unfit_entry("malformed")
        return
    if conversation.get("is_do_not_remember"):
        yield place, unfit_entry("do_not_remember")
        return
    branch = _find_branch(mapping, conversation.get("current_node"), "parent")
    for position, (key, node) in enumerate(mapping.items(), 1):
        message = node.get("message") if isinstance(node, dict) else None
        if message is None and isinstance(node, dict):
            continue  # the root of a conversation, without words
        where = f"message {position} of {place}"
        if branch and key not in branch:
            yield where, unfit_entry("other_branch")
        elif _content_type(message) == "user_editable_context":
            yield from _custom_instructions(where, message)
        else:
            yield where, partial(_chatgpt_message, message, conversation)


def _find_branch(nodes: Mapping[str, Any], last: Any, parent: str) -> set[str]:
    """The keys from a node up to the root; empty where the file names no such node."""
    branch: set[str] = set()
    while isinstance(last, str) and last in nodes and last not in branch:
        branch.add(last)
        node = nodes[last]
        last = node.get(parent) if isinstance(node, dict) else None
    return branch


def _content_type(message: Any) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    return short_text(content.get("content_type")) if isinstance(content, dict) else ""


def _custom_instructions(place: str, message: Any) -> Entries:
    """The custom instructions of the person, which stand in each conversation as if said there."""
    stated = message.get("metadata")
    told = stated.get("user_context_message_data") if isinstance(stated, dict) else None
    for name, wrapped, kind in ABOUT:
        text = told.get(name) if isinstance(told, dict) else None
        text = text if isinstance(text, str) else _unwrap(message["content"].get(wrapped))
        if text.strip():
            metadata = {"chatgpt_part": "custom_instructions"}
            yield place, partial(text_item, text, title="Custom instructions", metadata=metadata, semantic_type=kind)


def _unwrap(text: Any) -> str:
    """The words of the person within those that ChatGPT puts around them."""
    if not isinstance(text, str):
        return ""
    _, fence, rest = text.partition("```")
    return rest.rpartition("```")[0] if fence else text


def _chatgpt_message(message: Any, conversation: Mapping[str, Any]) -> Item:
    """Raises Unfit."""
    if not isinstance(message, dict):
        raise Unfit("malformed")
    author, content, stated = message.get("author"), message.get("content"), message.get("metadata")
    if not isinstance(author, dict) or not isinstance(content, dict):
        raise Unfit("malformed")
    kind = short_text(content.get("content_type"))
    if kind in UNSPOKEN:
        raise Unfit(UNSPOKEN[kind])
    if author.get("role") not in SPEAKERS:
        raise Unfit("other_role")
    if isinstance(stated, dict) and stated.get("is_visually_hidden_from_conversation"):
        raise Unfit("hidden")
    if message.get("recipient", "all") != "all":
        raise Unfit("tool_call")
    texts, is_spoken = _chatgpt_texts(content)
    title = conversation.get("title")
    session = conversation.get("conversation_id") or conversation.get("id") or ""
    identity = message.get("id")
    if not isinstance(session, str) or not isinstance(identity, str):
        raise Unfit("malformed")
    return text_item(
        "\n".join(texts),
        id=identity,
        title=title[:500] if isinstance(title, str) else "",
        at=message.get("create_time") or conversation.get("create_time"),
        labels={"session_id": session, "message_id": identity, "speaker": author["role"]},
        metadata={"chatgpt_part": "voice"} if is_spoken else {},
        semantic_type=SemanticType.DIALOGUE,
    )


def _chatgpt_texts(content: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The written and transcribed parts of a message, and whether any was spoken. Raises Unfit where none has words."""
    parts = content.get("parts")
    parts = parts if isinstance(parts, list) else [content["text"]] if isinstance(content.get("text"), str) else []
    spoken = [part for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    texts = [
        part if isinstance(part, str) else part["text"] for part in parts if isinstance(part, str) or part in spoken
    ]
    if not any(text.strip() for text in texts):
        raise Unfit("no_words" if any(isinstance(part, dict) for part in parts) else "empty")
    return texts, bool(spoken)


# Claude


def claude_entries(documents: Sequence[Document]) -> Entries:
    """Messages of Claude's export, its memory of the person, and the texts of projects."""
    projects: dict[str, str] = {}
    for document in sorted(documents, key=lambda document: "projects" not in document.name):
        reader = _claude_reader(document, projects)
        if reader is None:
            yield document.skip("account" if document.last_name == "users.json" else "not_text")
            continue
        elements = document.elements() if _is_list(document) else iter([document.json()])
        for number, element in enumerate(elements, 1):
            if isinstance(element, dict):
                yield from reader(f"entry {number}{document.place}", element)
            else:
                yield f"entry {number}{document.place}", unfit_entry("malformed")


def _is_list(document: Document) -> bool:
    with document.stream() as stream:
        return stream.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def _claude_reader(document: Document, projects: dict[str, str]) -> Callable[[str, dict[str, Any]], Entries] | None:
    name = document.name.lower()
    if not name.endswith(".json") and name:
        return None
    if "projects" in name:
        return partial(_claude_project, projects)
    if "memories" in name:
        return partial(_claude_memory, projects)
    return _claude_conversation if is_chatgpt_list(document.last_name) or not name else None


def _claude_conversation(place: str, chat: dict[str, Any]) -> Entries:
    messages, session = chat.get("chat_messages"), chat.get("uuid")
    if not isinstance(messages, list) or not isinstance(session, str):
        yield place, unfit_entry("malformed")
        return
    if not messages:
        yield place, unfit_entry("empty")
    branch = _claude_branch(messages)
    for position, message in enumerate(messages, 1):
        where = f"message {position} of {place}"
        if not isinstance(message, dict) or not isinstance(message.get("uuid"), str):
            yield where, unfit_entry("malformed")
        elif branch and message["uuid"] not in branch:
            yield where, unfit_entry("other_branch")
        else:
            yield where, partial(_claude_message, message, chat)
            yield from _claude_steps(where, message)
            yield from _claude_attachments(where, message, chat)


def _claude_branch(messages: Sequence[Any]) -> set[str]:
    """The messages on the way to the last one, where the file names their parents."""
    nodes = {message["uuid"]: message for message in messages if isinstance(message, dict) and "uuid" in message}
    if not any(node.get("parent_message_uuid", NOBODY) != NOBODY for node in nodes.values()):
        return set()
    return _find_branch(nodes, next(reversed(nodes)), "parent_message_uuid")


def _claude_labels(message: Mapping[str, Any], chat: Mapping[str, Any]) -> dict[str, Any]:
    sender = message.get("sender")
    if not isinstance(sender, str) or sender not in SENDERS:
        raise Unfit("other_role")
    return {"session_id": chat["uuid"], "message_id": message["uuid"], "speaker": SENDERS[sender]}


def _claude_message(message: Mapping[str, Any], chat: Mapping[str, Any]) -> Item:
    """Raises Unfit."""
    labels, blocks = _claude_labels(message, chat), message.get("content")
    blocks = [part for part in blocks if isinstance(part, dict)] if isinstance(blocks, list) else []
    texts = [part["text"] for part in blocks if part.get("type") == "text" and isinstance(part.get("text"), str)]
    text = "\n\n".join(texts) if blocks else message.get("text")
    if not isinstance(text, str) or not text.strip():
        raise Unfit("no_words" if message.get("files") or message.get("attachments") or blocks else "empty")
    return text_item(
        text,
        id=message["uuid"],
        title=short_text(chat.get("name"), 500),
        at=message.get("created_at"),
        labels=labels,
        semantic_type=SemanticType.DIALOGUE,
    )


def _claude_steps(place: str, message: Mapping[str, Any]) -> Entries:
    """The steps of the assistant beside its words, which are left out."""
    blocks = message.get("content")
    for number, part in enumerate(blocks if isinstance(blocks, list) else [], 1):
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind in CLAUDE_STEPS:
            yield f"block {number} of {place}", unfit_entry(CLAUDE_STEPS[kind])


def _claude_attachments(place: str, message: Mapping[str, Any], chat: Mapping[str, Any]) -> Entries:
    """The texts that were pasted or attached to a message."""
    attachments = message.get("attachments")
    for number, part in enumerate(attachments if isinstance(attachments, list) else [], 1):
        text = part.get("extracted_content") if isinstance(part, dict) else None
        if isinstance(text, str) and text.strip():
            yield (
                f"attachment {number} of {place}",
                partial(
                    text_item,
                    text,
                    id=f"{message['uuid']}/{number}",
                    title=short_text(part.get("file_name"), 500),
                    at=message.get("created_at"),
                    labels={"session_id": chat["uuid"]},
                    semantic_type=SemanticType.DOCUMENT,
                ),
            )


def _claude_memory(projects: Mapping[str, str], place: str, memory: dict[str, Any]) -> Entries:
    """Notes of Claude about the person, by section, and about each project."""
    text = memory.get("conversations_memory")
    for title, section in _bold_sections(text if isinstance(text, str) else ""):
        yield place, partial(text_item, section, title=title[:500], semantic_type=SemanticType.PROFILE)
    of_projects = memory.get("project_memories")
    for project, words in (of_projects if isinstance(of_projects, dict) else {}).items():
        if isinstance(words, str) and words.strip():
            yield (
                place,
                partial(text_item, words, title=projects.get(project, "")[:500], semantic_type=SemanticType.SUMMARY),
            )


def _bold_sections(text: str) -> Iterator[tuple[str, str]]:
    """The sections of a text with lines in bold as headings, each with its heading."""
    title, lines = "", list[str]()
    for line in [*text.splitlines(), "****"]:
        bare = line.strip()
        if len(bare) >= 4 and bare.startswith("**") and bare.endswith("**"):
            if any(map(str.strip, lines)):
                yield title, "\n".join(lines).strip()
            title, lines = bare.strip("*"), []
        else:
            lines.append(line)


def _claude_project(projects: dict[str, str], place: str, project: dict[str, Any]) -> Entries:
    """The description, instructions and documents of a project; Claude's own samples are left out."""
    name, identity = short_text(project.get("name"), 500), short_text(project.get("uuid"))
    projects[identity] = name
    if project.get("is_starter_project"):
        yield place, unfit_entry("sample")
        return
    fields = (("description", SemanticType.FACT), ("prompt_template", SemanticType.PREFERENCE))
    for part, kind in fields:
        text, at = project.get(part), project.get("created_at")
        if isinstance(text, str) and text.strip():
            yield place, partial(text_item, text, id=f"{identity}/{part}", title=name, at=at, semantic_type=kind)
    docs = project.get("docs")
    for number, doc in enumerate(docs if isinstance(docs, list) else [], 1):
        where = f"document {number} of {place}"
        if not isinstance(doc, dict) or not isinstance(doc.get("content"), str):
            yield where, unfit_entry("malformed")
            continue
        yield (
            where,
            partial(
                text_item,
                doc["content"],
                id=short_text(doc.get("uuid")),
                title=short_text(doc.get("filename"), 500),
                at=doc.get("created_at"),
                metadata={"project": name} if name else {},
                semantic_type=SemanticType.DOCUMENT,
            ),
        )


# Gemini


@dataclass(frozen=True)
class _Activity:
    """An entry of My Activity: the words of the person, and the answer as text."""

    said: str
    answer: str
    at: Any
    is_chat: bool


def gemini_entries(documents: Sequence[Document]) -> Entries:
    """The prompts and answers of a Takeout: MyActivity.json, or MyActivity.html."""
    for document in documents:
        name = document.last_name.lower().replace(" ", "")
        if name and not name.startswith(("myactivity.", "meineaktivitäten.")):
            yield document.skip("not_text")
            continue
        activities = map(_read_record, document.elements()) if _is_list(document) else _html_activities(document)
        for number, activity in enumerate(activities, 1):
            yield from _activity_entries(f"entry {number}{document.place}", activity)


def _activity_entries(place: str, activity: _Activity | None) -> Entries:
    if activity is None:
        yield place, unfit_entry("malformed")
    elif not activity.is_chat:
        yield place, unfit_entry("other_activity")
    else:
        for speaker, text in (("user", activity.said), ("assistant", activity.answer)):
            if text or speaker == "user":
                yield (
                    place,
                    partial(
                        text_item,
                        text,
                        id=f"{activity.at}/{speaker}" if activity.at else "",
                        at=activity.at,
                        labels={"speaker": speaker},
                        semantic_type=SemanticType.DIALOGUE,
                    ),
                )


def _read_record(record: Any) -> _Activity | None:
    title = record.get("title") if isinstance(record, dict) else None
    if not isinstance(title, str):
        return None
    html = record.get("safeHtmlItem")
    parts = [html] if isinstance(html, dict) else html if isinstance(html, list) else []
    answers = [part.get("html") or part.get("htmlValue") for part in parts if isinstance(part, dict)]
    answer = "\n".join(_html_text(text) for text in answers if isinstance(text, str))
    said = _strip_verb(title)
    products = f"{record.get('header')} {record.get('products')}".lower()
    is_gemini = any(name in products for name in GEMINI)
    at = record.get("time")
    return _Activity(said, answer, at if isinstance(at, str) else None, is_gemini and (said != title or bool(answer)))


def _strip_verb(title: str) -> str:
    """The words of a prompt without the verb that the activity begins with."""
    verb = next((verb for verb in PROMPTS if title.startswith(verb)), "")
    return title.removeprefix(verb).strip()


def _html_text(html: str) -> str:
    reader = _TextReader()
    reader.feed(html)
    reader.close()
    return reader.text()


class _TextReader(HTMLParser):
    """The text of HTML, a line for each block."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in SILENT_TAGS
        if tag in BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(0, self._silent - (tag in SILENT_TAGS))
        if tag in BREAKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)

    def text(self) -> str:
        lines = "".join(self.parts).splitlines()
        return "\n".join(" ".join(line.split()) for line in lines if line.strip())


class _CellReader(_TextReader):
    """The texts of the cells of an activity page, each with the class of its cell."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[tuple[str, str]] = []
        self._class, self._depth = "", 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "div":
            name = dict(attrs).get("class") or ""
            self._depth += bool(self._depth)
            if not self._depth and ("content-cell" in name or "header-cell" in name):
                self._class, self._depth, self.parts = name, 1, []
        super().handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        super().handle_endtag(tag)
        if tag == "div" and self._depth:
            self._depth -= 1
            if not self._depth:
                self.cells.append((self._class, self.text()))


def _html_activities(document: Document) -> Iterator[_Activity | None]:
    """The activities of a page; of each, the cell with its words follows the cell with the name of the product."""
    reader, product = _CellReader(), ""
    with document.stream() as stream:
        for line in stream:
            reader.feed(line.decode(errors="replace"))
            for name, text in reader.cells:
                if "header-cell" in name:
                    product = text.lower()
                elif "body-1" in name and "text-right" not in name:
                    yield _read_cell(text, product)
            reader.cells.clear()


def _read_cell(text: str, product: str) -> _Activity:
    lines = text.splitlines()
    times = [(at, moment) for at, line in enumerate(lines) if (moment := _takeout_time(line))]
    at, moment = times[0] if times else (1, None)
    title = "\n".join(lines[:at])
    said, answer = _strip_verb(title), "\n".join(lines[at + bool(moment) :])
    is_gemini = any(name in product for name in GEMINI)
    return _Activity(said, answer, moment and moment.isoformat(), is_gemini and (said != title or bool(answer)))


def _takeout_time(line: str) -> datetime | None:
    """A time as `May 1, 2026, 10:00:00 AM GMT+02:00`; None for other texts, and for other zones than GMT and UTC."""
    moment, _, zone = line.rpartition(" ")
    offset = zone.removeprefix("GMT").removeprefix("UTC")
    for form in TAKEOUT_TIMES:
        try:
            found = datetime.strptime(moment, form)
            return datetime.fromisoformat(f"{found.isoformat()}{offset or '+00:00'}").astimezone(UTC)
        except ValueError:
            continue
    return None
