"""Conversations of MemoryOS and LoCoMo: messages become pages of streams, knowledge facts and a profile."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from django.conf import settings
from django.db import transaction
from pydantic import TypeAdapter

from governance.actor import Actor
from governance.database import acting
from governance.errors import Invalid, TooLarge
from governance.jobs.kinds import JobRun
from governance.time_range import is_in_range
from vault.exchange.archives import LARGEST_DOCUMENT, documents_open
from vault.exchange.items import LeftOut, LeftOutReport, is_broken, json_read, refusal_reason
from vault.layers.conversation_import import ImportReport, conversations_import
from vault.layers.formats import MEMORYOS_FILES, Imported, Turn, locomo_parse, memoryos_parse
from vault.models import Cube
from vault.vocabulary import ImportFormat

PART = 100  # messages of one transaction: an even number, so that no page is cut
LONGEST_NAME = 100
MOST_ITEMS = 20_000  # of a file, which is read as a whole
ASSISTANT = "long_term_assistant.json"
CONVERSATION: TypeAdapter[Imported] = TypeAdapter(Imported)
_Entry = tuple[str, Turn | str]  # place in the file, and a message, fact or profile


@dataclass(frozen=True)
class ConversationFile:
    """The content of a file, and what of it is not imported."""

    imported: Imported
    left_out: tuple[LeftOut, ...] = ()

    @property
    def size(self) -> int:
        """Messages, facts and profiles."""
        return len(list_texts(self.imported))


@dataclass
class _Folder:
    """The files of one user while the zip is read."""

    names: set[str] = field(default_factory=set)
    files: dict[str, Any] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)


def conversation_read(stream: BinaryIO, form: ImportFormat) -> ConversationFile:
    """Read a file with messages, in a format that READERS has. Raises Invalid; TooLarge."""
    return READERS[form](stream)


def _read_locomo(stream: BinaryIO) -> ConversationFile:
    """Read a LoCoMo file. Raises Invalid; TooLarge."""
    content = stream.read(LARGEST_DOCUMENT + 1)
    if len(content) > LARGEST_DOCUMENT:
        raise TooLarge(f"A file of LoCoMo has at most {LARGEST_DOCUMENT} bytes.")
    imported = locomo_parse("The file", json_read(content, "The file"))
    return _drop_unfit(imported, [])


def _read_memoryos_folder(stream: BinaryIO) -> ConversationFile:
    """A zip of one user's data folder of MemoryOS. Raises Invalid; TooLarge."""
    found = _Folder()
    with documents_open(stream) as documents:
        if not all(document.name for document in documents):
            raise Invalid("The file is no readable zip.")
        for document in documents:
            folder, _, name = document.name.rpartition("/")
            if name in MEMORYOS_FILES:
                found.names.add(folder)
                found.files[name] = document.json()
            else:
                reason = "assistant_knowledge" if name == ASSISTANT else "not_text"
                found.left_out.append(LeftOut(f"file {document.name[:LONGEST_NAME]}", reason))
    if len(found.names) > 1:
        raise Invalid("The zip holds the data of several users. Import the folder of one user at a time.")
    user = "".join(found.names).rpartition("/")[2][:LONGEST_NAME] or "user"
    imported = memoryos_parse(user, found.files)
    return _drop_unfit(imported, found.left_out)


def list_texts(imported: Imported) -> list[str]:
    """The texts of messages, facts and profiles, in the order in which they are stored."""
    return [*(turn.message.content for turn in imported.turns), *imported.facts, *imported.profiles]


def texts_present(actor: Actor, hashes: Collection[bytes]) -> int:
    """The number of texts with these hashes that the actor can read here already. One query."""
    with acting(actor):
        rows = Cube.objects.visible_to(actor).filter(content_hash__in=hashes)
        return len({bytes(content_hash) for content_hash in rows.values_list("content_hash", flat=True)})


def part_store(run: JobRun, imported: Imported, left_out: LeftOutReport) -> tuple[int, ImportReport]:
    """Store the next part, within the caller's transaction; the number of texts looked at so far, and counts.

    What a policy or rule refuses is added to `left_out`. Raises and writes what `conversations_import` does.
    """
    entries: list[_Entry] = [(f"message {number}", turn) for number, turn in enumerate(imported.turns, 1)]
    entries += [(f"fact {number}", text) for number, text in enumerate(imported.facts, 1)]
    entries += [(f"profile {number}", text) for number, text in enumerate(imported.profiles, 1)]
    part = entries[run.done : run.done + PART]
    return run.done + len(part), _store_allowed(run, part, left_out)


def _store_allowed(run: JobRun, part: Sequence[_Entry], left_out: LeftOutReport) -> ImportReport:
    """Store a part in one call; by halves where any of it is refused."""
    imported = Imported(
        turns=tuple(value for _, value in part if isinstance(value, Turn)),
        facts=tuple(value for place, value in part if isinstance(value, str) and place.startswith("fact")),
        profiles=tuple(value for place, value in part if isinstance(value, str) and place.startswith("profile")),
    )
    given: Mapping[str, Any] = run.settings
    try:
        with transaction.atomic():
            return conversations_import(
                actor=run.actor, imported=imported, persona=given["persona"], namespace=given["namespace"]
            )
    except Invalid as refusal:
        if len(part) == 1:
            left_out.add(LeftOut(part[0][0], refusal_reason(refusal)))
            return ImportReport()
    middle = len(part) // 4 * 2 or 1  # even, so that no page is cut
    return _store_allowed(run, part[:middle], left_out).plus(_store_allowed(run, part[middle:], left_out))


def request_write(imported: Imported) -> bytes:
    return CONVERSATION.dump_json(replace(imported, left_out=()))


def request_read(line: bytes) -> Imported:
    return CONVERSATION.validate_json(line)


def _drop_unfit(imported: Imported, left_out: list[LeftOut]) -> ConversationFile:
    """Drop the texts that cannot be stored. left_out: other parts of the file that are ignored. Raises TooLarge."""
    left_out += [LeftOut(place[:LONGEST_NAME], reason) for place, reason in imported.left_out]
    if len(list_texts(imported)) + len(left_out) > MOST_ITEMS:
        raise TooLarge(f"A file holds at most {MOST_ITEMS} memories. Split it.")
    turns, kept = list[Turn](), dict[str, tuple[str, ...]]()
    for number, turn in enumerate(imported.turns, 1):
        moment = turn.message.timestamp
        reason = (
            "bad_time" if moment is not None and not is_in_range(moment) else _find_unfit_reason(turn.message.content)
        )
        turns += [] if reason else [turn]
        left_out += [LeftOut(f"message {number}", reason)] if reason else []
    for name, texts in (("fact", imported.facts), ("profile", imported.profiles)):
        reasons = [_find_unfit_reason(text) for text in texts]
        kept[name] = tuple(text for text, reason in zip(texts, reasons, strict=True) if not reason)
        left_out += [LeftOut(f"{name} {at}", reason) for at, reason in enumerate(reasons, 1) if reason]
    whole = replace(imported, turns=tuple(turns), facts=kept["fact"], profiles=kept["profile"])
    return ConversationFile(whole, tuple(left_out))


def _find_unfit_reason(text: str) -> str:
    """The reason why a text cannot be stored; empty if there is none."""
    if len(text) > settings.MAX_CONTENT_CHARACTERS:
        return "too_long"
    return "broken_text" if is_broken(text) else ""


READERS: Mapping[ImportFormat, Callable[[BinaryIO], ConversationFile]] = {
    ImportFormat.MEMORYOS: _read_memoryos_folder,
    ImportFormat.LOCOMO: _read_locomo,
}
CONVERSATIONS = frozenset(READERS)
