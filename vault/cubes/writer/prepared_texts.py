"""Preparation of texts before the transaction that stores them, so that it holds its locks for less time.

Results are looked up by the text itself. A text that was changed meanwhile is read in the transaction.
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
from vault.content.blobs import BlobRef, cache_blobs, copy_loaded_blobs, provide_blobs
from vault.content.words import Words, words_open
from vault.cubes.writer.text_process import run_in_text_process
from vault.index.terms import MemoryTexts, TextIndex, text_index
from vault.models import Cube, CubeVersion
from vault.screening.texts import NOTE_PARTS, Place, Texts, find_places, note_texts
from vault.vocabulary import PiiField

LARGE_CALL = 100_000  # characters, about half a second of work; from here on it is done in another process


@dataclass(frozen=True)
class Reading:
    """Texts to prepare. screened: parts to screen for personal data. is_note: the texts need no index."""

    texts: Texts
    screened: frozenset[PiiField] = frozenset()
    is_note: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class _PreparedParts:
    """Prepared results by title, speaker and content. places: of personal data, with the readings that have them;
    missing: detection failed."""

    indexes: dict[tuple[str, str, str], TextIndex] = field(default_factory=dict)
    places: dict[tuple[str, str, str], list[tuple[Reading, Sequence[Place]]]] = field(default_factory=dict)


@dataclass(frozen=True)
class PreparedTexts:
    """Prepared texts, for a later transaction."""

    key: DataKey
    texts: _PreparedParts
    blobs: dict[BlobRef, bytes] = field(default_factory=dict, repr=False)


_prepared: ContextVar[tuple[DataKey, _PreparedParts] | None] = ContextVar("prepared texts", default=None)


@contextmanager
def prepare_texts(tenant_id: UUID, find: Callable[[], Sequence[Reading]]) -> Iterator[None]:
    """Prepare the texts that `find` returns for the transactions inside; does nothing within an open transaction.

    Errors of `find` are ignored: the change itself raises them in its own order. Raises KeyUnavailable; Unavailable
    if the texts take too long.
    """
    if connection.in_atomic_block:
        yield
        return
    with provide_texts(_prepare_readings(tenant_id, find)):
        yield


@contextmanager
def provide_texts(read: PreparedTexts) -> Iterator[None]:
    """Use prepared texts and loaded blobs in the transactions inside."""
    token = _prepared.set((read.key, read.texts))
    try:
        with provide_blobs(copy_loaded_blobs() | read.blobs):
            yield
    finally:
        _prepared.reset(token)


def _prepare_readings(tenant_id: UUID, find: Callable[[], Sequence[Reading]]) -> PreparedTexts:
    readings: Sequence[Reading] = ()
    with cache_blobs() as blobs, suppress(DomainError):
        readings = find()
    maker = TokenMaker(key=token_maker(tenant_id).key)  # without what was looked up, which would go along
    is_large = sum(len(reading.texts.content) for reading in readings) >= LARGE_CALL
    known = run_in_text_process(_read_texts, maker, list(readings)) if is_large else _read_texts(maker, readings)
    return PreparedTexts(maker.key, known, blobs)


def text_index_of(maker: TokenMaker, words: MemoryTexts) -> TextIndex:
    """Return the prepared index of a text, or compute it."""
    prepared = _prepared.get()
    found = prepared[1].indexes.get(text_key(words)) if prepared and prepared[0] == maker.key else None
    return found or text_index(maker, words)


def prepared_places(texts: Texts, parts: Collection[PiiField]) -> Sequence[Place] | None:
    """Return the places of personal data in these parts of the texts; None if they were not prepared."""
    if not parts:
        return ()
    prepared, wanted = _prepared.get(), Reading(texts, frozenset(parts))
    known = prepared[1].places.get(text_key(texts), ()) if prepared else ()
    return next((places for reading, places in known if reading == wanted), None)


def note_reading(text: str) -> Reading:
    """Return the reading of the text that `screen_note` will check."""
    return Reading(note_texts(text), NOTE_PARTS, is_note=True)


def note_places(text: str) -> Sequence[Place] | None:
    """Return the places of personal data in a note; None if they were not prepared."""
    return prepared_places(note_texts(text), NOTE_PARTS)


def text_key(words: MemoryTexts) -> tuple[str, str, str]:
    return words.title, words.speaker, words.content


@contextmanager
def prepare_stored_texts(
    *, actor: Actor, cube_ids: Collection[UUID], screened: Collection[PiiField] = frozenset()
) -> Iterator[None]:
    """Prepare the present texts of memories that the actor may read, also deleted ones."""
    with prepare_texts(actor.tenant_id, lambda: _find_stored_texts(actor, cube_ids, screened)):
        yield


def read_stored_texts(
    *, actor: Actor, cube_ids: Collection[UUID], screened: Collection[PiiField] = frozenset()
) -> PreparedTexts:
    """Read the present texts of memories for a later transaction. Raises KeyUnavailable; Unavailable."""
    return _prepare_readings(actor.tenant_id, lambda: _find_stored_texts(actor, cube_ids, screened))


def read_version_texts(*, actor: Actor, version_ids: Collection[UUID]) -> PreparedTexts:
    """Read the texts of versions, all parts screened, for a later transaction that writes them anew. Those with the
    terms of the present version mostly have its words, which need no reading.

    Raises KeyUnavailable; Unavailable.
    """

    def find() -> list[Reading]:
        with acting(actor):
            versions = list(CubeVersion.objects.filter(tenant_id=actor.tenant_id, id__in=version_ids))
            ids = {version.cube_id for version in versions}
            rows = CubeVersion.objects.filter(cube_id__in=ids, number=F("cube__version"))
            present = dict(rows.values_list("cube_id", "terms"))
        others = [version for version in versions if set(version.terms) != set(present.get(version.cube_id, ()))]
        return [Reading(texts_of_version(version), frozenset(PiiField)) for version in others if version.sealed]

    return _prepare_readings(actor.tenant_id, find)


def _find_stored_texts(actor: Actor, cube_ids: Collection[UUID], screened: Collection[PiiField]) -> list[Reading]:
    with acting(actor):
        cubes = Cube.objects.all().reached_by(actor).filter(id__in=cube_ids)
        versions = list(CubeVersion.objects.filter(cube__in=cubes, number=F("cube__version")))
    return [Reading(texts_of_version(version), frozenset(screened)) for version in versions if version.sealed]


def texts_of_version(version: CubeVersion) -> Texts:
    """Open the texts of a version. Raises KeyUnavailable."""
    words = words_open(tenant_id=version.tenant_id, cube_id=version.cube_id, number=version.number, blob=version.sealed)
    return texts_of_words(words, tuple(version.tags))


def texts_of_words(words: Words, tags: tuple[str, ...]) -> Texts:
    return Texts(words.content, words.title, words.metadata, tags, words.speaker)


def _read_texts(maker: TokenMaker, readings: Sequence[Reading]) -> _PreparedParts:
    known = _PreparedParts()
    for reading in readings:
        if not reading.is_note:
            known.indexes[text_key(reading.texts)] = text_index(maker, reading.texts)
        if reading.screened:
            with suppress(DetectorFailed):  # the transaction tries again, and its policy decides
                places = find_places(detector(), reading.texts, reading.screened)
                known.places.setdefault(text_key(reading.texts), []).append((reading, places))
    return known
