"""The versions that a caller may change: those that If-Match names."""

from collections.abc import Collection

from governance.errors import InvalidETag, VersionConflict

MALFORMED: Collection[int] = range(0)  # an If-Match that is no list of ETags


def version_check(what: str, present: int, expected: Collection[int]) -> None:
    """Raises InvalidETag where `expected` is MALFORMED; VersionConflict unless `present` is among `expected`."""
    if expected is MALFORMED:
        raise InvalidETag(f'Write If-Match with quotes, as in "{present}".')
    if present in expected:
        return
    if not expected:
        raise VersionConflict(f'If-Match names no version: send the ETag that was read, as in "{present}".')
    named = ", ".join(str(number) for number in sorted(expected))
    raise VersionConflict(f"The {what} is at version {present}, not {named}.")
