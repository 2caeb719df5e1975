"""File formats of other projects' conversations: MemoryOS's data folders, and LoCoMo. Pure except for reading files."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from governance.errors import Invalid
from vault.layers.statements import is_worth_keeping
from vault.reader.services import Message
from vault.vocabulary import MessageRole

LONGEST_LABEL = 100
MOST_BYTES = 200 * 2**20  # of one file
SILENT, PICTURE, BESIDE = "says_nothing", "no_words", "beside"  # reasons why a part is not taken
EARLIEST = datetime.min.replace(tzinfo=UTC)
MEMORYOS_FILES = ("short_term.json", "mid_term.json", "long_term_user.json")
SIDES = (("user_input", MessageRole.USER), ("agent_response", MessageRole.ASSISTANT))
LOCOMO_TIME = "%I:%M %p on %d %B, %Y"  # "1:56 pm on 8 May, 2023"
_SESSION = re.compile(r"session_(\d{1,6})")


@dataclass(frozen=True)
class Turn:
    """One message of a conversation. answers: True for a reply, the second side of a page."""

    session: str
    message: Message = field(repr=False)
    answers: bool


@dataclass(frozen=True)
class Imported:
    """The content of imported files.

    facts: sentences about the user; profiles: texts. skipped: the number of messages and lines that are empty or report
    a provider's failure; pictures: the number of messages with a picture, of which only the words are imported.
    left_out: the place of each part that is not imported, and the reason.
    """

    turns: tuple[Turn, ...]
    facts: tuple[str, ...] = field(default=(), repr=False)
    profiles: tuple[str, ...] = field(default=(), repr=False)
    skipped: int = 0
    pictures: int = 0
    left_out: tuple[tuple[str, str], ...] = ()


def memoryos_read(folder: Path) -> Imported:
    """Return the content of a user's folder of MemoryOS. Raises Invalid."""
    try:
        files = {name: _read_json(folder / name) for name in MEMORYOS_FILES if (folder / name).is_file()}
    except ValueError as error:
        raise Invalid(f"{folder.name} is not in MemoryOS's layout.") from error
    return memoryos_parse(folder.name, files)


def memoryos_parse(user: str, files: Mapping[str, Any]) -> Imported:
    """Return the data of one user of MemoryOS. files: the JSON of existing MEMORYOS_FILES by name. Raises Invalid."""
    if not files:
        raise Invalid(f"{user} holds no {', '.join(MEMORYOS_FILES[:-1])} or {MEMORYOS_FILES[-1]}.")
    try:
        return _parse_memoryos(files, f"memoryos/{user}")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Invalid(f"{user} is not in MemoryOS's layout.") from error


def locomo_read(path: Path) -> Imported:
    """Return the content of a file in LoCoMo's format. Raises Invalid."""
    try:
        samples = _read_json(path)
    except ValueError as error:
        raise Invalid(f"{path.name} is not in LoCoMo's layout.") from error
    return locomo_parse(path.name, samples)


def locomo_parse(name: str, samples: Any) -> Imported:
    """Return the conversations of LoCoMo: both speakers are people, and the first one's turns are questions. Raises
    Invalid.
    """
    try:
        turns = tuple(turn for sample in samples for turn in _locomo_turns(sample))
        left_out = tuple(part for sample in samples for part in _locomo_left_out(sample))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise Invalid(f"{name} is not in LoCoMo's layout.") from error
    reasons = [reason for _, reason in left_out]
    return Imported(turns, skipped=reasons.count(SILENT), pictures=reasons.count(PICTURE), left_out=left_out)


def _locomo_left_out(sample: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the parts of a sample that are not imported: turns without words, pictures, and annotations."""
    for _, _, said in _iterate_sessions(sample):
        for turn in said:
            if not turn["text"].strip():
                yield f"turn {turn['dia_id']}", SILENT
            if "img_url" in turn:
                yield f"picture of turn {turn['dia_id']}", PICTURE
    for name in sorted(set(sample) - {"conversation", "sample_id"}):
        yield f"{name} of {sample['sample_id']}", BESIDE


def _parse_memoryos(files: Mapping[str, Any], session: str) -> Imported:
    short, mid, long = (files.get(name) for name in MEMORYOS_FILES)
    long = long or {}
    details = [
        page
        for session_part in ((mid or {}).get("sessions") or {}).values()
        for page in session_part.get("details", ())
    ]
    pages = sorted([*details, *(short or ())], key=lambda page: _parse_time(str(page.get("timestamp", ""))) or EARLIEST)
    turns = tuple(turn for page in pages for turn in _page_turns(page, session))
    lines = [str(fact.get("knowledge", "")) for fact in long.get("knowledge_base") or ()]
    texts = [str(profile.get("data", "")) for profile in (long.get("user_profiles") or {}).values()]
    facts = tuple(dict.fromkeys(line.strip(" -*•\n") for line in lines if is_worth_keeping(line)))
    profiles = tuple(text.strip() for text in texts if is_worth_keeping(text))
    silent = [f"{name} of page {at}" for at, page in enumerate(pages, 1) for name, _ in SIDES if _is_silent(page, name)]
    silent += [f"knowledge {at}" for at, line in enumerate(lines, 1) if not is_worth_keeping(line)]
    silent += [f"profile {at}" for at, text in enumerate(texts, 1) if not is_worth_keeping(text)]
    sides = sum(bool(str(page.get(name) or "").strip()) for page in pages for name, _ in SIDES)
    skipped = sides + len(lines) + len(texts) - len(turns) - len(facts) - len(profiles)
    left_out = tuple((place, SILENT) for place in silent)
    return Imported(turns, facts, profiles, skipped, left_out=left_out)


def _is_silent(page: dict[str, Any], name: str) -> bool:
    text = str(page.get(name) or "").strip()
    return bool(text) and not is_worth_keeping(text)


def _page_turns(page: dict[str, Any], session: str) -> Iterator[Turn]:
    at = _parse_time(str(page.get("timestamp", "")))
    for name, role in SIDES:
        text = str(page.get(name) or "").strip()
        if text and is_worth_keeping(text):
            digest = sha256(f"{page.get('timestamp')}\x00{name}\x00{text}".encode()).hexdigest()[:32]
            message = Message(role=role, content=text, timestamp=at, message_id=digest)
            yield Turn(session, message, answers=role is MessageRole.ASSISTANT)


def _locomo_turns(sample: dict[str, Any]) -> Iterator[Turn]:
    for number, at, said in _iterate_sessions(sample):
        for turn in said:
            if not turn["text"].strip():
                continue
            message = Message(
                role=MessageRole.USER,
                content=turn["text"],
                name=_check_label(turn["speaker"]),
                timestamp=at,
                message_id=_check_label(turn["dia_id"]),
            )
            session = f"{_check_label(sample['sample_id'])}/session-{number}"
            yield Turn(session, message, answers=turn["speaker"] == sample["conversation"].get("speaker_b"))


def _check_label(value: Any) -> str:
    """Check the name of a speaker, a turn or a sample. Raises TypeError; ValueError."""
    if not isinstance(value, str):
        raise TypeError("a name is a text")
    value.encode()
    if not 1 <= len(value) <= LONGEST_LABEL or "\x00" in value:
        raise ValueError("a name is too long, or cannot be stored")
    return value


def _iterate_sessions(sample: dict[str, Any]) -> Iterator[tuple[int, datetime, list[dict[str, Any]]]]:
    """Yield the number, the time and the turns of each session, in order."""
    conversation = sample["conversation"]
    for number in sorted(int(match[1]) for key in conversation if (match := _SESSION.fullmatch(key))):
        at = datetime.strptime(conversation[f"session_{number}_date_time"], LOCOMO_TIME).replace(tzinfo=UTC)
        yield number, at, conversation[f"session_{number}"]


def _read_json(path: Path) -> Any:
    """Return the JSON of a file, None if the file is missing. Raises Invalid; ValueError."""
    if not path.is_file():
        return None
    if path.stat().st_size > MOST_BYTES:
        raise Invalid(f"{path.name} is larger than {MOST_BYTES} bytes.")
    return json.loads(path.read_text(encoding="utf-8"))


def _parse_time(text: str) -> datetime | None:
    """Return a time in ISO 8601 or LoCoMo's format, in UTC unless it names a zone. None for other texts."""
    for read in (datetime.fromisoformat, lambda text_: datetime.strptime(text_, LOCOMO_TIME)):
        try:
            moment = read(text)
        except ValueError:
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
