"""Messages about fields and parameters that a call does not know."""

from collections.abc import Collection
from difflib import get_close_matches

LONGEST = 100  # of a name that is compared: the comparison takes time with the square of the length


def describe_unknown(name: object, known: Collection[str]) -> str:
    """Return the known names, and the one that was probably meant, as in "known are a, b. Did you mean a?"."""
    listed = f"known are {', '.join(known)}"
    close = get_close_matches(name, known, n=1) if isinstance(name, str) and len(name) <= LONGEST else []
    return f"{listed}. Did you mean {close[0]}?" if close else listed
