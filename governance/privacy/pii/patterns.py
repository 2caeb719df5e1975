"""Patterns that stand beside Chinese as well as between spaces, and that cost little where nothing is to be found.

`\\b` will not do: to it a Chinese character is a letter too, so that 银行卡4111… would have no beginning. And each
pattern begins with the characters that it begins with, the look behind them coming second: then the engine leaps from
one candidate to the next instead of looking behind at every place.
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
