"""Preparation of texts before the transaction that stores them, because a transaction holds locks while it reads.

What was found is looked up by the text itself. A text that somebody else changed meanwhile is read in the transaction.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from uuid import UUID

from django.db import connection
from django.db.models import F

from governance.actor import Actor
from governance.database import acting
from governance.errors import DomainError
from governance.keys.rules import DataKey
from governance.keys.services import TokenMaker, token_maker
from governance.privacy.detection import detector
from governance.privacy.pii.detector import DetectorFailed
from vault.content.blobs import BlobRef, blobs_at_hand, blobs_cached, blobs_given
from vault.content.words import Words, words_open
from vault.cubes.writer.outside import run_outside
from vault.index.terms import TextIndex, Worded, text_index
from vault.models import Cube, CubeVersion
from vault.screening.texts import NOTE_PARTS, Place, Texts, note_texts, places_in
from vault.vocabulary import PiiField

LARGE_CALL = 100_000  # characters, about half a second of work; from here on it is done in another process


@dataclass(frozen=True)
class Reading:
    """Texts to be read, and the parts of them to look for personal data in. is_note: nobody searches for them."""

    texts: Texts
    screened: frozenset[PiiField] = frozenset()
    is_note: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class _Prepared:
    """indexes: by title, speaker and content; places: of personal data; one that is missing was not found out."""

    indexes: dict[tuple[str, str, str], TextIndex] = field(default_factory=dict)
    places: list[tuple[Reading, Sequence[Place]]] = field(default_factory=list)


@dataclass(frozen=True)
class PreparedTexts:
    """Prepared texts, for a later transaction."""

    key: DataKey
    texts: _Prepared
    blobs: dict[BlobRef, bytes] = field(default_factory=dict, repr=False)


_prepared: ContextVar[tuple[DataKey, _Prepared] | None] = ContextVar("prepared texts", default=None)


@contextmanager
def texts_prepared(tenant_id: UUID, find: Callable[[], Sequence[Reading]]) -> Iterator[None]:
    """Read the texts that `find` returns, unless a transaction is open; within, they are not read again.

    What `find` raises is left to the change itself, which knows what comes first. Raises KeyUnavailable; Unavailable
    when the texts take too long.
    """
    if connection.in_atomic_block:
        yield
        return
    with texts_given(_texts_read(tenant_id, find)):
        yield


@contextmanager
def texts_given(read: PreparedTexts) -> Iterator[None]:
    """Within, texts that were read before are not read again, and archived ones are at hand."""
    token = _prepared.set((read.key, read.texts))
    try:
        with blobs_given(blobs_at_hand() | read.blobs):
            yield
    finally:
        _prepared.reset(token)


def _texts_read(tenant_id: UUID, find: Callable[[], Sequence[Reading]]) -> PreparedTexts:
    readings: Sequence[Reading] = ()
    with blobs_cached() as blobs, suppress(DomainError):
        readings = find()
    maker = TokenMaker(key=token_maker(tenant_id).key)  # without what was looked up, which would go along
    is_large = sum(len(one.texts.content) for one in readings) >= LARGE_CALL
    known = run_outside(_read, maker, list(readings)) if is_large else _read(maker, readings)
    return PreparedTexts(maker.key, known, blobs)


def text_index_of(maker: TokenMaker, words: Worded) -> TextIndex:
    """`text_index`, looked up where it was prepared."""
    prepared = _prepared.get()
    found = prepared[1].indexes.get(text_key(words)) if prepared and prepared[0] == maker.key else None
    return found or text_index(maker, words)


def places_prepared(texts: Texts, parts: Collection[PiiField]) -> Sequence[Place] | None:
    """Return the places of personal data in these parts of the texts; None if they were not prepared."""
    if not parts:
        return ()
    prepared, wanted = _prepared.get(), Reading(texts, frozenset(parts))
    return next((places for reading, places in (prepared[1].places if prepared else ()) if reading == wanted), None)


def note_reading(text: str) -> Reading:
    """Prepare the text that `note_screened` will check, before its transaction."""
    return Reading(note_texts(text), NOTE_PARTS, is_note=True)


def note_places(text: str) -> Sequence[Place] | None:
    """Return the places of personal data in a note; None if they were not prepared."""
    return places_prepared(note_texts(text), NOTE_PARTS)


def text_key(words: Worded) -> tuple[str, str, str]:
    return words.title, words.speaker, words.content


@contextmanager
def stored_texts_prepared(
    *, actor: Actor, cube_ids: Collection[UUID], screened: Collection[PiiField] = frozenset()
) -> Iterator[None]:
    """The same for the present texts of memories, also deleted ones, that the actor may read."""
    with texts_prepared(actor.tenant_id, lambda: _stored(actor, cube_ids, screened)):
        yield


def stored_texts_read(
    *, actor: Actor, cube_ids: Collection[UUID], screened: Collection[PiiField] = frozenset()
) -> PreparedTexts:
    """Read the present texts of memories for a later transaction. Raises KeyUnavailable; Unavailable."""
    return _texts_read(actor.tenant_id, lambda: _stored(actor, cube_ids, screened))


def version_texts_read(*, actor: Actor, version_ids: Collection[UUID]) -> PreparedTexts:
    """Read the texts of versions, all parts screened, for a later transaction that writes them anew.

    Raises KeyUnavailable; Unavailable.
    """

    def find() -> list[Reading]:
        with acting(actor):
            versions = list(CubeVersion.objects.filter(tenant_id=actor.tenant_id, id__in=version_ids))
        return [Reading(texts_of_version(one), frozenset(PiiField)) for one in versions if one.sealed]

    return _texts_read(actor.tenant_id, find)


def _stored(actor: Actor, cube_ids: Collection[UUID], screened: Collection[PiiField]) -> list[Reading]:
    with acting(actor):
        cubes = Cube.objects.all().reached_by(actor).filter(id__in=cube_ids)
        versions = list(CubeVersion.objects.filter(cube__in=cubes, number=F("cube__version")))
    return [Reading(texts_of_version(one), frozenset(screened)) for one in versions if one.sealed]


def texts_of_version(version: CubeVersion) -> Texts:
    """Raises KeyUnavailable."""
    words = words_open(tenant_id=version.tenant_id, cube_id=version.cube_id, number=version.number, blob=version.sealed)
    return texts_of_words(words, tuple(version.tags))


def texts_of_words(words: Words, tags: tuple[str, ...]) -> Texts:
    return Texts(words.content, words.title, words.metadata, tags, words.speaker)


def _read(maker: TokenMaker, readings: Sequence[Reading]) -> _Prepared:
    known = _Prepared()
    for one in readings:
        if not one.is_note:
            known.indexes[text_key(one.texts)] = text_index(maker, one.texts)
        if one.screened:
            with suppress(DetectorFailed):  # asked again where the policy is known, which says what follows
                known.places.append((one, places_in(detector(), one.texts, one.screened)))
    return known
