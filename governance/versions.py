"""The versions that a caller may change: those that If-Match names."""

from collections.abc import Collection

from governance.errors import VersionConflict


def version_check(what: str, present: int, expected: Collection[int]) -> None:
    """Raises VersionConflict unless the present version of `what` is among `expected`."""
    if present in expected:
        return
    if not expected:
        raise VersionConflict(f'If-Match names no version: send the ETag that was read, as in "{present}".')
    named = ", ".join(str(number) for number in sorted(expected))
    raise VersionConflict(f"The {what} is at version {present}, not {named}.")
