"""Form fields that pages about memories share."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from django.http import QueryDict
from django.utils import timezone

from governance.access.grants.selectors import find_object_by_name
from governance.actor import Actor
from governance.errors import FieldError, Invalid, NotFound
from governance.text_values import read_local_time
from governance.web.pagination import number_or_none, uuid_or_none
from vault.namespaces.rules import PathError, check_path

MOST_TAGS, LONGEST_TAG = 50, 100
Kind = TypeVar("Kind", bound=StrEnum)


def unconfirmed_path(actor: Actor, form: QueryDict) -> str:
    """Return the namespace of the form if it does not exist and its creation is not confirmed yet; else nothing."""
    return next(iter(unconfirmed_paths(actor, form, [form.get("namespace", "")])), "")


def unconfirmed_paths(actor: Actor, form: QueryDict, typed: Iterable[str]) -> list[str]:
    """Return those of the typed namespaces that do not exist and whose creation the form does not confirm."""
    paths = dict.fromkeys(path.strip() for path in typed)
    return [path for path in paths if path not in form.getlist("new_namespace") and _is_new(actor, path)]


def _is_new(actor: Actor, path: str) -> bool:
    """Return whether a namespace would be created; False for a text that is no path: the service says what is wrong."""
    try:
        check_path(path)
        find_object_by_name(actor=actor, object_type="namespace", name=path)
    except NotFound:
        return True
    except (PathError, Invalid):
        return False
    return False


def chosen_read(form: QueryDict) -> dict[UUID, int | None]:
    """Return the chosen memories, each with the version that its page showed: from `id@3`, or `id` without a
    version."""
    chosen: dict[UUID, int | None] = {}
    for text in form.getlist("id"):
        memory, _, version = text.partition("@")
        if (memory_id := uuid_or_none(memory)) is not None:
            chosen[memory_id] = number_or_none(version)
    return chosen


def chosen_text(memory_id: UUID, version: int | None) -> str:
    """Return a chosen memory in the format that `chosen_read` reads."""
    return f"{memory_id}@{version}" if version else str(memory_id)


def read_expected_versions(form: QueryDict) -> set[int] | None:
    """Return the version that the page showed; None if the form has none."""
    number = number_or_none(form.get("version", ""))
    return {number} if number else None


def query_part(address: str) -> str:
    """Return the query string of an address. Raises Invalid if it is no address."""
    try:
        return urlsplit(address).query
    except ValueError as error:
        raise Invalid(errors=[FieldError("query", "the address of a list is needed")]) from error


def tags_read(text: str) -> tuple[str, ...]:
    """Parse comma-separated tags. Raises Invalid."""
    tags = tuple(dict.fromkeys(part for piece in text.replace("，", ",").split(",") if (part := piece.strip())))
    if len(tags) > MOST_TAGS or any(len(tag) > LONGEST_TAG or not tag.isprintable() for tag in tags):
        raise Invalid(errors=[FieldError("tags", f"at most {MOST_TAGS} tags of {LONGEST_TAG} characters")])
    return tags


def member_read(kind: type[Kind], form: QueryDict, name: str) -> Kind:
    """Read a member of an enumeration. Raises Invalid."""
    text = form.get(name, "")
    if text not in set(kind):
        raise Invalid(errors=[FieldError(name, "choose one")])
    return kind(text)


def day_read(form: QueryDict, name: str) -> datetime | None:
    """Read a date, or a date and time, in the reader's time zone; None for an empty field. Raises Invalid."""
    return read_local_time(form.get(name, "").strip(), name, "a date such as 2027-01-31")


def moment_format(moment: datetime | None) -> str:
    """Format a time in the form that `day_read` reads."""
    return f"{timezone.localtime(moment):%Y-%m-%dT%H:%M}" if moment else ""
