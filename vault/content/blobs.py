"""Archived content: the sealed bytes of versions in the blob store, and references to them in the rows.

The row of an archived version holds a reference instead of its sealed bytes: a format byte, the SHA-256 of the bytes
and their length. A database trigger allows no other change of a version. A remote store is read outside of
transactions: if a transaction lacks blobs, they are loaded and the request, or the function in `with_blobs`, runs again
(governance.database.run_again); `vault.cubes.writer.prepared_texts` loads them for writes. A local store is read at
once.
"""

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from typing import ParamSpec, TypeVar
from uuid import UUID

from django.db import connection

from governance.actor import Actor
from governance.database import run_again
from governance.errors import Reread
from governance.outbox.services import emit
from governance.vocabulary import Topic
from vault.models import Cube, CubeVersion, MemoryForm, StateTransition
from vault.providers.ports import BlobStoreUnavailable
from vault.providers.registry import blob_store
from vault.vocabulary import MemoryType, State

FORMAT = 2  # of a reference; sealed bytes begin with another (governance.keys.rules)
REFERENCE = struct.Struct("!B32sI")
AT_ONCE = 500  # blobs of one event
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(frozen=True)
class BlobRef:
    """A reference to a blob. length: in bytes."""

    name: str
    digest: bytes
    length: int


class BlobLost(BlobStoreUnavailable):
    """A blob is missing, or its bytes do not match its row."""


class BlobsNeeded(Reread):
    """A transaction lacks blobs. They are loaded outside of it, then the transaction runs again."""

    code, title = BlobStoreUnavailable.code, BlobStoreUnavailable.title

    def __init__(self, refs: Sequence[BlobRef]) -> None:
        super().__init__("Archived content was not loaded. Send the request again.")
        self.refs = tuple(refs)

    @contextmanager
    def supply(self) -> Iterator[None]:
        """Load the blobs for the code in this block. Raises BlobStoreUnavailable."""
        with provide_blobs(copy_loaded_blobs()):
            for ref in self.refs:
                blob_read(ref)
            yield


_loaded: ContextVar[dict[BlobRef, bytes] | None] = ContextVar("loaded blobs", default=None)


def blob_name(tenant_id: UUID, cube_id: UUID, number: int) -> str:
    return f"{tenant_id}/{cube_id}/{number}"


def blob_ref(*, tenant_id: UUID, cube_id: UUID, number: int, stored: bytes | memoryview) -> BlobRef | None:
    """Return the reference in the `sealed` column of a version; None if the column holds the bytes or is empty."""
    if len(stored) != REFERENCE.size or stored[0] != FORMAT:
        return None
    _, digest, length = REFERENCE.unpack(stored)
    return BlobRef(blob_name(tenant_id, cube_id, number), digest, length)


def stored_length(stored: bytes | memoryview) -> int:
    """Return the number of sealed bytes of a version, whether they are in its row or in the blob store."""
    is_reference = len(stored) == REFERENCE.size and stored[0] == FORMAT
    return int(REFERENCE.unpack(stored)[2]) if is_reference else len(stored)


def blob_read(ref: BlobRef) -> bytes:
    """Return the bytes of a reference from the loaded blobs or from the store.

    Raises BlobsNeeded inside a transaction if the store is remote; BlobStoreUnavailable, also for a missing or changed
    blob.
    """
    loaded = _loaded.get()
    if loaded is not None and ref in loaded:
        return loaded[ref]
    store = blob_store()
    if store.is_remote and connection.in_atomic_block:
        raise BlobsNeeded([ref])
    content = store.read(ref.name)
    if content is None:
        raise BlobLost("The content of an archived memory is missing in the archive.")
    if len(content) != ref.length or hashlib.sha256(content).digest() != ref.digest:
        raise BlobLost("The content of an archived memory was changed in the archive.")
    if loaded is not None:
        loaded[ref] = content
    return content


def blobs_require(refs: Iterable[BlobRef | None]) -> None:
    """Raise BlobsNeeded for all of these blobs that are not loaded, so that they are loaded together."""
    loaded = _loaded.get() or {}
    missing = [ref for ref in refs if ref is not None and ref not in loaded]
    if missing and connection.in_atomic_block and blob_store().is_remote:
        raise BlobsNeeded(missing)


def copy_loaded_blobs() -> dict[BlobRef, bytes]:
    """Return a copy of the loaded blobs."""
    return dict(_loaded.get() or {})


@contextmanager
def cache_blobs() -> Iterator[dict[BlobRef, bytes]]:
    """Cache the blobs that are read in this block, so that later transactions of the block need not read them again."""
    outer = _loaded.get()
    if outer is not None:
        yield outer
        return
    with provide_blobs({}) as loaded:
        yield loaded


@contextmanager
def provide_blobs(loaded: dict[BlobRef, bytes]) -> Iterator[dict[BlobRef, bytes]]:
    """Use these loaded blobs in this block instead of reading them again."""
    token = _loaded.set(loaded)
    try:
        yield loaded
    finally:
        _loaded.reset(token)


def with_blobs(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Wrap a function that only reads memories: if its transaction lacks blobs, load them and run it again.

    Raises BlobStoreUnavailable.
    """

    @wraps(function)
    def run(*values: Parameters.args, **named: Parameters.kwargs) -> Result:
        return run_again(partial(function, *values, **named), is_safe=True)

    return run


def blobs_forget(actor: Actor, cube: Cube, versions: Sequence[CubeVersion]) -> None:
    """Request the deletion of the blobs of these versions, because the caller's transaction removes their texts.

    A recalled version may have a blob although no row refers to it. Writes: OutboxEvent …, if blobs may exist.
    """
    if cube.type != MemoryType.PLAINTEXT:
        payload_forget(actor, cube, versions)
    has_blobs = any(_blob_ref_of(version) for version in versions)
    if not has_blobs and not StateTransition.objects.filter(cube_id=cube.id, to_state=State.ARCHIVED).exists():
        return
    numbers = [version.number for version in versions]
    for start in range(0, len(numbers), AT_ONCE):
        part = numbers[start : start + AT_ONCE]
        emit(actor=actor, topic=Topic.BLOBS_ORPHANED, payload={"cube": str(cube.id), "numbers": part})


def payload_forget(actor: Actor, cube: Cube, versions: Sequence[CubeVersion]) -> None:
    """Delete the row of a cache or adapter, and request the deletion of its payload in the blob store and the engine.

    Its name goes along as it is sealed, for the adapter that is trained in its place, unless it was made of memories
    about a data subject, of whom the name may tell. Writes: OutboxEvent …; deletes MemoryForm.
    """
    for form in MemoryForm.objects.filter(tenant_id=cube.tenant_id, cube_id=cube.id):
        emit(actor=actor, topic=Topic.BLOBS_ORPHANED, payload={"cube": str(form.id), "numbers": [0]})
        parents = [str(parent) for parent in form.parents]
        payload: dict[str, object] = {"form": str(form.id), "kind": cube.type, "parents": parents, "pack": form.pack}
        latest = max(versions, key=lambda version: version.number, default=None)
        if latest is not None and not form.subjects and _blob_ref_of(latest) is None:
            sealed = bytes(latest.sealed).hex()
            payload["name"] = {"cube": str(cube.id), "number": latest.number, "sealed": sealed}
        emit(actor=actor, topic=Topic.FORMS_DROPPED, payload=payload)
        form.delete()


def _blob_ref_of(version: CubeVersion) -> BlobRef | None:
    return blob_ref(tenant_id=version.tenant_id, cube_id=version.cube_id, number=version.number, stored=version.sealed)
