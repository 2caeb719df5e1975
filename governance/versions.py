"""Version preconditions: a caller changes an object only if If-Match names its current version."""

import re
from collections.abc import Collection, Iterable

from governance.errors import InvalidETag, VersionConflict

VersionLists = Collection[tuple[int, ...]]  # each: versions of several objects, in the order of their ids
LIST = re.compile(r"[0-9]{1,9}(?:-[0-9]{1,9})*")
MALFORMED: Collection[int] = range(0)  # an If-Match that is no list of ETags


def version_check(what: str, present: int, expected: Collection[int]) -> None:
    """Check the precondition of a change. Raises InvalidETag if `expected` is MALFORMED; VersionConflict if `present`
    is not in it.
    """
    if expected is MALFORMED:
        raise InvalidETag(f'Write If-Match with quotes, as in "{present}".')
    if present in expected:
        return
    if not expected:
        raise VersionConflict(f'If-Match names no version: send the ETag that was read, as in "{present}".')
    named = ", ".join(str(number) for number in sorted(expected))
    raise VersionConflict(f"The {what} is at version {present}, not {named}.")


def versions_text(versions: Iterable[int]) -> str:
    """Return the versions of several objects as the text of an ETag."""
    return "-".join(str(number) for number in versions)


def read_versions(texts: Iterable[str]) -> VersionLists:
    """Return the versions in texts of `versions_text`; other texts are skipped."""
    return {tuple(int(number) for number in text.split("-")) for text in texts if LIST.fullmatch(text)}
