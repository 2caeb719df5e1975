"""Patterns that match beside Chinese characters too, and that cost little in texts without a match.

`\\b` counts a Chinese character as a letter, so that 银行卡4111… would have no beginning. Each pattern starts with its
first character, and the look-behind comes second: the engine then jumps from one candidate to the next.
"""

import re
from collections.abc import Callable, Iterator

NOT_AFTER = r"(?<![A-Za-z0-9].)"  # the first character is matched already
NOT_BEFORE = r"(?![A-Za-z0-9])"
LONG_NUMBER = re.compile(r"[0-9](?:[ .\-/()]{0,2}[0-9]){6}")


def compile_delimited(first: str, rest: str) -> re.Pattern[str]:
    """Compile `first`, one character, and `rest`, not adjacent to a Latin letter or digit."""
    return re.compile(f"{first}{NOT_AFTER}(?:{rest}){NOT_BEFORE}", re.DOTALL)


def has_long_number(text: str) -> bool:
    """Return whether seven digits stand together or in groups; shorter numbers are no phone number, card or id."""
    return LONG_NUMBER.search(text) is not None


def find_accepted(
    pattern: re.Pattern[str], text: str, accepts: Callable[[re.Match[str]], bool]
) -> Iterator[re.Match[str]]:
    """Yield the matches that `accepts` accepts. After a rejected match the search continues inside it.

    Linear for patterns of bounded length: each position is tried once.
    """
    found = pattern.search(text)
    while found:
        taken = accepts(found)
        if taken:
            yield found
        found = pattern.search(text, found.end() if taken else found.start() + 1)
