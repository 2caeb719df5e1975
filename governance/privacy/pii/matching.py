"""Patterns that stand beside Chinese as well as between spaces."""

import re
from collections.abc import Callable, Iterator

NOT_AFTER = r"(?<![A-Za-z0-9])"
NOT_BEFORE = r"(?![A-Za-z0-9])"


def alone(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """`pattern` where no Latin letter or digit touches it. Not `\\b`: to it a Chinese character is a letter too."""
    return re.compile(f"{NOT_AFTER}(?:{pattern}){NOT_BEFORE}", flags)


def accepted(
    pattern: re.Pattern[str], text: str, accepts: Callable[[re.Match[str]], bool]
) -> Iterator[re.Match[str]]:
    """The matches that `accepts` takes. After one that it refuses the search goes on inside it.

    Linear for patterns of bounded length: each place is tried once.
    """
    found = pattern.search(text)
    while found:
        taken = accepts(found)
        if taken:
            yield found
        found = pattern.search(text, found.end() if taken else found.start() + 1)
