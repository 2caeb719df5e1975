"""Paths of namespaces. Pure."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from vault.vocabulary import DELETED_MARK

PRIVATE_ROOT = "/users"
CHAT_PART = "chat"
LONGEST_PATH = 200
PATH = re.compile(r"(?:/[\w.@+-]++)++", re.UNICODE)
NOT_IN_A_PART = re.compile(r"[^\w.@+-]+")
DELETED_END = re.compile(rf"{DELETED_MARK}[0-9a-f]{{12}}\Z")


@dataclass(frozen=True)
class PathError(Exception):
    """The text is no namespace path; the message says why."""

    message: str


def check_path(path: str) -> str:
    """Return `path`: `/part/part`, of letters (any script), digits and . _ - + @, at most 200 characters. Raises
    PathError.
    """
    if len(path) > LONGEST_PATH or not PATH.fullmatch(path) or "/../" in f"{path}/" or "/./" in f"{path}/":
        raise PathError(
            "a path such as /team/notes: letters, digits and . _ - + @ between slashes, at most 200 characters"
        )
    if not is_under(path, PRIVATE_ROOT) and is_under(_looks_like(path), PRIVATE_ROOT):
        raise PathError(f"{PRIVATE_ROOT} is written in just these letters")
    return path


def _looks_like(path: str) -> str:
    return unicodedata.normalize("NFKC", path).casefold()


def is_under(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")


def paths_above(path: str) -> Iterator[str]:
    """Yield the paths above `path`, the nearest first."""
    while path := path.rpartition("/")[0]:
        yield path


def private_path(name: str, *, taken: bool, member_id: str) -> str:
    """Return the home of a member: `/users/alice`, with a piece of the member's id added if the path is taken."""
    part = NOT_IN_A_PART.sub("-", name).strip("-.") or "member"
    return f"{PRIVATE_ROOT}/{part[:100]}" + (f"-{member_id[-12:]}" if taken else "")


def chat_path(home: str) -> str:
    """Return the path of a member's chats: a namespace inside their home."""
    return f"{home}/{CHAT_PART}"


def deleted_path(path: str, namespace_id: str) -> str:
    """Return the path of a namespace after its deletion. No path that a person writes has the mark."""
    end = f"{DELETED_MARK}{namespace_id[-12:]}"
    return path[: LONGEST_PATH - len(end)] + end


def path_before_deletion(path: str) -> str:
    """Return a path without the mark of a deleted namespace."""
    return DELETED_END.sub("", path)


def member_home(path: str) -> str:
    """Return the member's home that a private path lies in."""
    return "/".join(path.split("/")[:3])
