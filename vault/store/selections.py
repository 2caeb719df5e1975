"""The part of a pack that a subscription takes: the memories with some tags, and those that are near a query."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from governance.errors import KeyUnavailable
from governance.keys.services import GENERAL, open_sealed, seal_for
from vault.embeddings.calibration import to_cosine
from vault.lexicon.tokens import language_of
from vault.models import PackVersion, Subscription
from vault.providers.ports import Matrix
from vault.providers.registry import embedder
from vault.store.excerpts import trial_open
from vault.store.files import Item

MOST_TAGS = 50
LONGEST_QUERY = 300
LEAST_NEAR = 0.25  # calibrated cosine of the query and a memory: three of four such memories answer it


@dataclass(frozen=True)
class Selection:
    """A memory is taken if it has one of the tags, in any case, or is near the query. Without both, all are taken."""

    tags: tuple[str, ...] = ()
    query: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.tags or self.query)


EVERYTHING = Selection()


def selection_seal(row: Subscription, selection: Selection) -> bytes:
    """Return the sealed form of a selection, empty for EVERYTHING. Raises KeyUnavailable."""
    if not selection:
        return b""
    plaintext = json.dumps(asdict(selection), ensure_ascii=False).encode()
    return seal_for(tenant_id=row.tenant_id, scope=GENERAL, place=_encryption_context(row), plaintext=plaintext)


def selection_open(row: Subscription) -> Selection:
    """Return the selection of a subscription. Raises KeyUnavailable, also if its key was destroyed."""
    blob = bytes(row.selection)
    if not blob:
        return EVERYTHING
    plaintext = open_sealed(tenant_id=row.tenant_id, place=_encryption_context(row), blob=blob)
    if plaintext is None:  # taking everything instead would install what nobody asked for
        raise KeyUnavailable("The part of the pack that the subscription takes cannot be read.")
    stated = json.loads(plaintext)
    return Selection(tuple(stated["tags"]), stated["query"])


def select_items(selection: Selection, version: PackVersion, items: Sequence[Item]) -> tuple[Item, ...]:
    """Return the selected memories of a version, in its order. Runs outside any transaction: it calls the model.

    Raises ProviderUnavailable; KeyUnavailable.
    """
    if not selection:
        return tuple(items)
    tags = {tag.casefold() for tag in selection.tags}
    taken = {item.id for item in items if tags.intersection(map(str.casefold, item.tags))}
    if selection.query:
        model = embedder()
        least = to_cosine(LEAST_NEAR, model.name, language_of(selection.query))
        near = _load_vectors(version, items) @ model.embed([selection.query])[0]
        taken |= {item.id for item, cosine in zip(items, near, strict=True) if cosine >= least}
    return tuple(item for item in items if item.id in taken)


def _load_vectors(version: PackVersion, items: Sequence[Item]) -> Matrix:
    """Return the vectors of the memories: those of the index of trials, or new ones if it is of another model."""
    index = trial_open(version)
    if index is None:
        return embedder().embed([item.content for item in items])
    places = {key: place for place, key in enumerate(index.keys)}
    return np.asarray(index.vectors[[places[item.id] for item in items]])


def _encryption_context(row: Subscription) -> bytes:
    return b"selection" + row.id.bytes
