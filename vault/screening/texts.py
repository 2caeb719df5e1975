"""The texts of a memory as a sequence for PII detection, and their redaction with placeholders."""

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from governance.privacy.pii.detector import Detector
from governance.privacy.pii.pii_ranges import Span, placeholder, redact
from vault.content.words import Metadata
from vault.vocabulary import PiiField


@dataclass(frozen=True)
class Texts:
    """The texts of a memory that may hold personal data."""

    content: str = field(repr=False)
    title: str = field(default="", repr=False)
    metadata: Metadata = field(default_factory=dict, repr=False)
    tags: tuple[str, ...] = field(default=(), repr=False)
    speaker: str = field(default="", repr=False)


NOTE_PARTS = frozenset({PiiField.TITLE})


def note_texts(text: str) -> Texts:
    """Return a short text that belongs to a memory, such as a reason, as the title of otherwise empty texts."""
    return Texts("", text)


@dataclass(frozen=True)
class Leaf:
    """A single text of a memory. index: position within its part. is_name: it is the key of the next leaf."""

    part: PiiField
    index: int
    text: str = field(repr=False)
    is_name: bool = False


@dataclass(frozen=True)
class Place:
    """A span of personal data, and the leaf that contains it."""

    part: PiiField
    leaf: int
    span: Span


def find_places(detector: Detector, texts: Texts, fields: Iterable[PiiField]) -> list[Place]:
    """Detect personal data in these fields, with at most three calls of the detector. Raises DetectorFailed."""
    wanted = set(fields)
    found = [
        Place(name, 0, span)
        for name, text in ((PiiField.CONTENT, texts.content), (PiiField.TITLE, texts.title))
        if name in wanted and text
        for span in detector.find(text)
    ]
    if not (texts.metadata or texts.tags or texts.speaker):
        return found
    leaves = [leaf for leaf in _short_leaves(texts) if leaf.part in wanted]
    return found + _places_in_leaves(detector, leaves)


def leaves_of(texts: Texts) -> list[Leaf]:
    """Return all leaves, in the order in which `leaf` of a finding numbers them."""
    return [Leaf(PiiField.CONTENT, 0, texts.content), Leaf(PiiField.TITLE, 0, texts.title), *_short_leaves(texts)]


def _short_leaves(texts: Texts) -> list[Leaf]:
    """Return the leaves of metadata, tags and speaker, which are screened together."""
    leaves = [
        Leaf(PiiField.METADATA, index, _leaf_text(part), named) for index, (part, named) in _scalars(texts.metadata)
    ]
    leaves += [Leaf(PiiField.TAGS, index, tag) for index, tag in enumerate(texts.tags)]
    return [*leaves, Leaf(PiiField.SPEAKER, 0, texts.speaker)]


def redact_places(texts: Texts, places: Iterable[Place]) -> Texts:
    """Replace each of `places` with a placeholder."""
    by_leaf: dict[tuple[PiiField, int], list[Span]] = {}
    for place in places:
        by_leaf.setdefault((place.part, place.leaf), []).append(place.span)

    def clean(name: PiiField, leaf: int, text: str) -> str:
        return redact(text, sorted(by_leaf.get((name, leaf), ()), key=lambda span: span.start))

    touched = {leaf for name, leaf in by_leaf if name is PiiField.METADATA}
    metadata = texts.metadata
    if touched:
        metadata = _rewrite_metadata(
            texts.metadata,
            lambda leaf, part: clean(PiiField.METADATA, leaf, _leaf_text(part)) if leaf in touched else part,
        )
    return replace(
        texts,
        content=clean(PiiField.CONTENT, 0, texts.content),
        title=clean(PiiField.TITLE, 0, texts.title),
        metadata=metadata,
        tags=tuple(dict.fromkeys(clean(PiiField.TAGS, leaf, tag) for leaf, tag in enumerate(texts.tags))),
        speaker=clean(PiiField.SPEAKER, 0, texts.speaker),
    )


def shift_places(places: Iterable[Place], replaced: Iterable[Place]) -> list[Place]:
    """Return the positions that `places` have after `replaced`, which do not overlap them, became placeholders."""
    ends: dict[tuple[PiiField, int], list[int]] = defaultdict(list)
    longer: dict[tuple[PiiField, int], list[int]] = defaultdict(lambda: [0])  # growth of the text before each of `ends`
    for other in sorted(replaced, key=lambda place: place.span.end):
        leaf = (other.part, other.leaf)
        ends[leaf].append(other.span.end)
        longer[leaf].append(longer[leaf][-1] + len(placeholder(other.span.kind)) - other.span.end + other.span.start)
    return [
        _shift_place(place, longer[leaf][bisect_right(ends[leaf], place.span.start)])
        for place in places
        for leaf in [(place.part, place.leaf)]
    ]


def _shift_place(place: Place, by: int) -> Place:
    return replace(place, span=replace(place.span, start=place.span.start + by, end=place.span.end + by))


def paths_of(metadata: Metadata) -> list[str]:
    """Return the dotted path of each metadata leaf, in order. A key has the same path as its value."""
    return list(_paths(metadata, ("metadata",)))


def _places_in_leaves(detector: Detector, leaves: Sequence[Leaf]) -> list[Place]:
    """Detect personal data in all leaves at once. A key is put before its value as context, as in `phone: 138…`."""
    starts, pieces, at = [], [], 0
    for leaf in leaves:
        starts.append(at)
        pieces += [leaf.text, ": " if leaf.is_name else "\n"]
        at += len(leaf.text) + len(pieces[-1])
    return [
        place
        for span in (detector.find("".join(pieces)) if leaves else ())
        for place in _split_span(leaves, starts, span)
    ]


def _split_span(leaves: Sequence[Leaf], starts: Sequence[int], span: Span) -> Iterator[Place]:
    """Yield the places of a span of the joined text in the leaves that it covers."""
    for number in range(bisect_right(starts, span.start) - 1, len(leaves)):
        leaf, offset = leaves[number], starts[number]
        start, end = max(0, span.start - offset), min(len(leaf.text), span.end - offset)
        if span.end <= offset:
            return
        if start < end:
            yield Place(leaf.part, leaf.index, replace(span, start=start, end=end))


def _leaf_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _scalars(value: Any) -> Iterator[tuple[int, tuple[Any, bool]]]:
    return enumerate(_parts(value))


def _parts(value: Any) -> Iterator[tuple[Any, bool]]:
    """Yield the keys and scalars of a JSON value, with True for keys."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield name, True
            yield from _parts(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _parts(part)
    else:
        yield value, False


def _paths(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield ".".join((*path, name))
            yield from _paths(part, (*path, name))
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            yield from _paths(part, (*path, str(index)))
    else:
        yield ".".join(path)


def _rewrite_metadata(metadata: Metadata, change: Callable[[int, Any], Any]) -> Metadata:
    counter = iter(range(10**9))

    def rewrite(value: Any) -> Any:
        if isinstance(value, Mapping):
            made: dict[str, Any] = {}
            for name, part in value.items():
                changed = change(next(counter), name)
                made[_free_name(made, changed)] = rewrite(part)
            return made
        if isinstance(value, (list, tuple)):
            return [rewrite(part) for part in value]
        return change(next(counter), value)

    rewritten: Metadata = rewrite(metadata)
    return rewritten


def _free_name(taken: Mapping[str, Any], name: str) -> str:
    """Return `name` with a number if it is taken, so that two redacted keys stay apart."""
    wanted, number = name, 2
    while wanted in taken:
        wanted, number = f"{name} {number}", number + 1
    return wanted
