"""The items of an exchange: one memory with its versions, as a line of JSON. Pure."""

import codecs
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Annotated, Any, BinaryIO, ClassVar

from django.conf import settings
from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from governance.errors import DomainError, Invalid
from governance.time_range import is_in_range
from vault.store.files import refuse_repeated_names
from vault.vocabulary import Layer, SemanticType, Sensitivity, SourceKind, State

FORMAT = "memos-memories/1"
ORIGIN, ORIGIN_FORMAT = "imported_id", "imported_from"  # of an imported memory's metadata
HELD_THERE = "held_there"  # of the metadata of a memory that a hold kept in the system that it comes from
MOST_VERSIONS = 200
MOST_PLACES = 100  # of what is left out of a file
DEEPEST = 8
MOST_VALUES = 2_000_000  # of a JSON document, counted by its punctuation before it is read
LARGEST_ELEMENT = 64 * 1024 * 1024  # characters of an element of a list
BLOCK = 1024 * 1024
BLANKS = " \t\r\n"
BROKEN = re.compile("[\x00\ud800-\udfff]")
STRICT = ConfigDict(extra="forbid", hide_input_in_errors=True)

Identifier = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200)]
Label = Annotated[str, StringConstraints(strict=True, max_length=200)]
Tag = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=100)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


@dataclass(frozen=True)
class ItemVersion:
    """One version of a memory. importance: 0..1."""

    content: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=32_000)] = field(repr=False)
    title: Annotated[str, StringConstraints(strict=True, max_length=500)] = field(default="", repr=False)
    tags: Annotated[tuple[Tag, ...], Field(max_length=50)] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    semantic_type: SemanticType = SemanticType.FACT
    sensitivity: Sensitivity = Sensitivity.INTERNAL
    importance: Share = 0.5
    event_time: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    reason: Annotated[str, StringConstraints(strict=True, max_length=500)] = field(default="", repr=False)

    __pydantic_config__: ClassVar[ConfigDict] = STRICT


@dataclass(frozen=True)
class Origin:
    """A memory that another one was made from. version: of that memory, from 1."""

    id: Identifier
    version: Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]
    kind: SourceKind

    __pydantic_config__: ClassVar[ConfigDict] = STRICT


@dataclass(frozen=True)
class Item:
    """One memory. id: in the system that it comes from; versions: oldest first; namespace: empty for a private one.

    dialogue_only: a message that states nothing. said_at: when it was said, or stored in the system that it comes from.
    persona: the name of the persona that it is for. held: whether a hold kept it there.
    """

    id: Identifier
    versions: Annotated[tuple[ItemVersion, ...], Field(min_length=1, max_length=MOST_VERSIONS)]
    namespace: Label = ""
    subject: Label | None = field(default=None, repr=False)
    speaker: Label = field(default="", repr=False)
    session_id: Label = ""
    message_id: Label = ""
    task_id: Label = ""
    dialogue_only: Annotated[bool, Field(strict=True)] = False
    made_from: Annotated[tuple[Origin, ...], Field(max_length=100)] = ()
    said_at: datetime | None = None
    persona: Label = field(default="", repr=False)
    layer: Layer = Layer.LONG_TERM
    state: State = State.GENERATED
    expires_at: datetime | None = None
    held: Annotated[bool, Field(strict=True)] = False

    __pydantic_config__: ClassVar[ConfigDict] = STRICT


@dataclass(frozen=True)
class LeftOut:
    """A part of a file that is not imported. place: as `line 7` or `row 3`; reason: a code."""

    place: str
    reason: str


@dataclass
class LeftOutReport:
    """The parts of a file that are not imported. counts: by reason; places: the first MOST_PLACES."""

    counts: dict[str, int] = field(default_factory=dict)
    places: list[LeftOut] = field(default_factory=list)

    def add(self, part: LeftOut) -> None:
        self.counts[part.reason] = self.counts.get(part.reason, 0) + 1
        if len(self.places) < MOST_PLACES:
            self.places.append(part)

    @classmethod
    def of(cls, parts: Iterable[LeftOut]) -> "LeftOutReport":
        report = cls()
        for part in parts:
            report.add(part)
        return report

    @classmethod
    def read(cls, report: Mapping[str, Any]) -> "LeftOutReport":
        return cls(dict(report["left_out"]), [LeftOut(**place) for place in report["places"]])

    def write(self) -> dict[str, Any]:
        """Return the fields `left_out` and `places` of a job's report."""
        return {"left_out": dict(sorted(self.counts.items())), "places": [asdict(place) for place in self.places]}

    @property
    def total(self) -> int:
        return sum(self.counts.values())


ITEM: TypeAdapter[Item] = TypeAdapter(Item)
# Fields that readers of earlier releases do not know: they travel only where they say something.
LATER_FIELDS = {
    part.name: part.default for part in fields(Item) if part.name in {"persona", "layer", "state", "expires_at", "held"}
}


def refusal_reason(refusal: DomainError) -> str:
    """Return the code of a refusal, or the name of the field at fault, as `expires_at`."""
    is_named = isinstance(refusal, Invalid) and refusal.code == Invalid.code and bool(refusal.errors)
    return refusal.errors[0].field if is_named else refusal.code


class Unfit(Exception):
    """An entry cannot become a memory. The message is the code of the reason."""


def item_line(item: Item) -> bytes:
    """The line of an item, without its line feed."""
    return ITEM.dump_json(item, exclude=silent_fields(item))


def silent_fields(item: Item) -> set[str]:
    """The later fields that do not travel, since they say nothing."""
    return {name for name, default in LATER_FIELDS.items() if getattr(item, name) == default}


def item_read(line: bytes) -> Item:
    """Read an item. Raises Unfit."""
    try:
        return item_check(_parse_json(line.decode()))
    except (ValueError, RecursionError) as error:
        raise Unfit("malformed") from error


def item_check(value: Any) -> Item:
    """Check the item. Raises Unfit."""
    try:
        item: Item = ITEM.validate_python(value)
    except (ValidationError, RecursionError) as error:
        raise Unfit(_find_reason(error)) from error
    for version in item.versions:
        _check_version(version)
    labels = [item.id, item.namespace, item.subject or "", item.speaker, item.persona]
    labels += [item.session_id, item.message_id, item.task_id]
    if not all(_is_time(moment) for moment in (item.said_at, item.expires_at) if moment is not None):
        raise Unfit("bad_time")
    if any(is_broken(text) for text in (*labels, *(origin.id for origin in item.made_from))):
        raise Unfit("broken_text")
    return item


def is_broken(text: str) -> bool:
    """Return whether a text has a NUL or half of a surrogate pair, which PostgreSQL cannot store."""
    return BROKEN.search(text) is not None


def json_read(content: bytes, what: str) -> Any:
    """A JSON document in UTF-8, in which no object has a name twice. Raises Invalid."""
    if sum(content.count(mark) for mark in (b",", b":", b"[", b"{")) > MOST_VALUES:
        raise Invalid(f"{what} holds more than {MOST_VALUES:,} values. Split it.")
    try:
        return _parse_json(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{what} is no JSON in UTF-8, or an object in it has a name twice.") from error


def iterate_list(stream: BinaryIO, what: str) -> Iterator[Any]:
    """Yield the elements of a JSON list in UTF-8, read one after the other. what: the file's name in a refusal.

    Raises Invalid, also for an element of more than LARGEST_ELEMENT characters.
    """
    reader = _ElementReader(codecs.getreader("utf-8-sig")(stream), what)
    reader.expect("[")
    if reader.take("]"):
        return
    while True:
        yield reader.element()
        if not reader.take(","):
            reader.expect("]")
            return


class _ElementReader:
    """Reads a JSON list element by element; the text in memory is one element and a block at most."""

    def __init__(self, text: Any, what: str) -> None:
        self._text, self._what = text, what
        self._buffer, self._at = "", 0
        self._decoder = json.JSONDecoder(parse_constant=_no_number, object_pairs_hook=refuse_repeated_names)

    def expect(self, mark: str) -> None:
        if not self.take(mark):
            raise self._fault()

    def take(self, mark: str) -> bool:
        """Step over a mark, if it comes next."""
        while True:
            while self._at < len(self._buffer) and self._buffer[self._at] in BLANKS:
                self._at += 1
            if self._at < len(self._buffer):
                break
            if not self._fill():
                return False
        is_next = self._buffer[self._at] == mark
        self._at += is_next
        return is_next

    def element(self) -> Any:
        self.take("")  # blanks
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except (ValueError, RecursionError) as error:
                if isinstance(error, RecursionError) or not self._fill():
                    raise self._fault() from error
                continue
            if end == len(self._buffer) and self._fill():
                continue  # a number may go on
            self._at = end
            return value

    def _fill(self) -> bool:
        """Read about as much again as waits; False at the end of the file."""
        rest = self._buffer[self._at :]
        if sum(map(rest.count, ",:[{")) > MOST_VALUES or len(rest) > LARGEST_ELEMENT:
            raise Invalid(f"{self._what} has an element of more than {MOST_VALUES:,} values. Split it.")
        try:
            more = self._text.read(max(BLOCK, len(rest)))
        except ValueError as error:
            raise self._fault() from error
        self._buffer, self._at = rest + more, 0
        return bool(more)

    def _fault(self) -> Invalid:
        return Invalid(f"{self._what} is no JSON in UTF-8, or an object in it has a name twice.")


def _check_version(version: ItemVersion) -> None:
    if not version.content.strip():
        raise Unfit("empty")
    if any(is_broken(text) for text in (version.content, version.title, version.reason, *version.tags)):
        raise Unfit("broken_text")
    times = [time for time in (version.event_time, version.valid_from, version.valid_to) if time is not None]
    if not all(map(_is_time, times)):
        raise Unfit("bad_time")
    if version.valid_from and version.valid_to and version.valid_to <= version.valid_from:
        raise Unfit("bad_time")
    _check_metadata(version.metadata)


def _is_time(moment: datetime) -> bool:
    return moment.tzinfo is not None and is_in_range(moment)


def _check_metadata(metadata: Mapping[str, Any]) -> None:
    level: list[Any] = [metadata]
    for _ in range(DEEPEST):
        level = [child for part in level for child in _list_children(part)]
    if level:
        raise Unfit("bad_metadata")
    if any(
        is_broken(iterate_leaf) if isinstance(iterate_leaf, str) else not math.isfinite(iterate_leaf)
        for iterate_leaf in _iterate_leaves(metadata)
    ):
        raise Unfit("bad_metadata")
    if len(json.dumps(metadata, ensure_ascii=False).encode()) > settings.MAX_METADATA_BYTES:
        raise Unfit("bad_metadata")


def _list_children(part: Any) -> list[Any]:
    return list(part.values()) if isinstance(part, dict) else part if isinstance(part, list) else []


def _iterate_leaves(value: Any) -> Iterator[str | float]:
    """The texts and numbers of a JSON value, names of objects among them."""
    if isinstance(value, str | float):
        yield value
    elif isinstance(value, dict):
        for name, child in value.items():
            yield str(name)
            yield from _iterate_leaves(child)
    elif isinstance(value, list):
        for child in value:
            yield from _iterate_leaves(child)


def _find_reason(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "malformed"
    kinds = {fault["type"] for fault in error.errors(include_input=False, include_url=False)}
    if "string_too_long" in kinds:
        return "too_long"
    return "bad_time" if any(kind.startswith("datetime") for kind in kinds) else "malformed"


def _parse_json(text: str) -> Any:
    """Raises ValueError; RecursionError."""
    return json.loads(text, parse_constant=_no_number, object_pairs_hook=refuse_repeated_names)


def _no_number(text: str) -> float:
    raise ValueError(text)
