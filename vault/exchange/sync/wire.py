"""Messages between two installations that keep a namespace in step. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, TypeAdapter, ValidationError

from governance.errors import Conflict
from vault.exchange.item_drafts import CHANGED, SYNC_FORMAT
from vault.exchange.items import (
    ITEM,
    ORIGIN,
    ORIGIN_FORMAT,
    Item,
    Unfit,
    is_broken,
    item_check,
    item_line,
    silent_fields,
)
from vault.vocabulary import SyncOutcome

LISTED = 1_000  # memories of one page of a list
MOST_AT_ONCE = 100  # memories of one call that reads or writes
MOST_BYTES = 700_000  # of the memories of one answer or call; a single one may have more
LONGEST_ITEM = 500_000  # bytes; of a longer history the oldest versions stay behind
LONGEST_CALL = 2 * 1024 * 1024
LONGEST_CODE = 200
KEY_UNKNOWN = "The other installation does not know the API key. Change the key, then sync again."
NAMESPACE_UNKNOWN = "The other installation has no such namespace, or the key may not read it."
FOREIGN = "The other installation answers what this one does not understand. Compare their versions."

Number = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]


@dataclass(frozen=True)
class Listed:
    """A memory of a list, by id and present version."""

    id: UUID
    version: Number


@dataclass(frozen=True)
class Listing:
    """A page of the memories of a namespace, by id. count: of all; is_last: none follows."""

    count: int
    memories: tuple[Listed, ...]
    is_last: bool


@dataclass(frozen=True)
class Sent:
    """A memory that another installation gives. stays: why it does not; GONE where it is there no more.

    origin: of a copy that a sync made, the id of its original. version: the number of its last version.
    """

    id: UUID
    version: int = 0
    item: Item | None = None
    origin: str = ""
    stays: str = ""


@dataclass(frozen=True)
class Change:
    """A memory that is sent to be stored. target, base: there, the memory and the version that it is a change of.

    sent None: the memory was deleted here.
    """

    sent: Sent | None
    target: UUID | None = None
    base: int | None = None


@dataclass(frozen=True)
class Applied:
    """The outcome of a change. id, version: of the memory as it is there now; theirs: of a conflict, its present words.

    reason: the code of a refusal.
    """

    outcome: SyncOutcome
    id: UUID | None = None
    version: int | None = None
    reason: str = ""
    theirs: Item | None = None


GONE = "gone"

LISTING: TypeAdapter[Listing] = TypeAdapter(Listing)


def make_sent(memory_id: UUID, version: int, item: Item) -> Sent:
    """A memory as it is sent: without its namespace, persona and holds, and without where an earlier sync had it from.

    These belong to the installation: the other one has its own.
    """
    last = item.versions[-1].metadata
    origin = str(last.get(ORIGIN, "")) if last.get(ORIGIN_FORMAT) == SYNC_FORMAT else ""
    versions = tuple(replace(version, metadata=_own_metadata(version.metadata)) for version in item.versions)
    return Sent(
        memory_id, version, shorten_item(replace(item, versions=versions, namespace="", persona="", held=False)), origin
    )


def shorten_item(item: Item) -> Item:
    """The item with as many of its newest versions as LONGEST_ITEM allows, at least the present one."""
    while len(item.versions) > 1 and len(item_line(item)) > LONGEST_ITEM:
        item = replace(item, versions=item.versions[len(item.versions) // 2 :])
    return item


def is_equal(first: Any, other: Any) -> bool:
    """Return whether two versions say the same; the note on why they were made does not count."""
    return all(_comparable_value(first, name) == _comparable_value(other, name) for name in CHANGED)


def item_json(item: Item | None) -> Any:
    return None if item is None else ITEM.dump_python(item, mode="json", exclude=silent_fields(item))


def sent_json(sent: Sent) -> dict[str, Any]:
    return {
        "id": str(sent.id),
        "version": sent.version,
        "item": item_json(sent.item),
        "origin": sent.origin,
        "stays": sent.stays,
    }


def change_json(change: Change) -> dict[str, Any]:
    return {
        "sent": sent_json(change.sent) if change.sent else None,
        "target": str(change.target) if change.target else None,
        "base": change.base,
    }


def applied_json(applied: Applied) -> dict[str, Any]:
    return {
        "outcome": str(applied.outcome),
        "id": str(applied.id) if applied.id else None,
        "version": applied.version,
        "reason": applied.reason,
        "theirs": item_json(applied.theirs),
    }


def listing_read(body: Any, after: UUID | None) -> Listing:
    """Raises Conflict for what is no list in the order of ids, from behind `after`."""
    try:
        listing = LISTING.validate_python(body)
    except ValidationError as error:
        raise Conflict(FOREIGN) from error
    ids = [*([after] if after else []), *(memory.id for memory in listing.memories)]
    if any(earlier >= other for earlier, other in pairwise(ids)) or not (listing.memories or listing.is_last):
        raise Conflict(FOREIGN)
    return listing


def sent_read(body: Mapping[str, Any]) -> Sent:
    """A memory that cannot be stored here stays with the code of the reason. Raises Conflict."""
    try:
        sent = Sent(
            UUID(body["id"]), _read_number(body["version"]), None, _read_code(body["origin"]), _read_code(body["stays"])
        )
        if body["item"] is None:
            return sent
    except (ValueError, TypeError, KeyError) as error:
        raise Conflict(FOREIGN) from error
    try:
        return replace(sent, item=item_check(body["item"]))
    except Unfit as unfit:
        return replace(sent, stays=str(unfit))


def applied_read(body: Mapping[str, Any]) -> Applied:
    """Read the results of a write. Raises Conflict."""
    try:
        theirs = item_check(body["theirs"]) if body["theirs"] is not None else None
        found_id = UUID(body["id"]) if body["id"] else None
        version = _read_number(body["version"]) if body["version"] is not None else None
        return Applied(SyncOutcome(body["outcome"]), found_id, version, _read_code(body["reason"]), theirs)
    except (ValueError, TypeError, KeyError, Unfit) as error:
        raise Conflict(FOREIGN) from error


def measure_size(value: Any) -> int:
    """The bytes of a message's part as JSON."""
    return len(json.dumps(value, ensure_ascii=False).encode())


def _read_number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise ValueError(value)
    return value


def _read_code(value: Any) -> str:
    """A code, or the id of an origin. Raises ValueError for what cannot be stored."""
    text = str(value)[:LONGEST_CODE]
    if is_broken(text):
        raise ValueError("not a code")
    return text


def _own_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name not in {ORIGIN, ORIGIN_FORMAT}}


def _comparable_value(version: Any, name: str) -> Any:
    value = getattr(version, name)
    if name == "metadata":
        return _own_metadata(value)
    return tuple(value) if isinstance(value, list) else value
