"""Mail addresses (RFC 5321 sizes; Latin letters)."""

import re
from collections.abc import Iterator

from governance.privacy.pii.pii_ranges import Span
from governance.vocabulary import PiiKind

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
MAIL = re.compile(
    r"(?<![A-Za-z0-9._%+'-])[A-Za-z0-9_](?:[A-Za-z0-9._%+'-]{0,62}[A-Za-z0-9_+-])?"
    rf"@((?:{_LABEL}\.){{1,8}}([A-Za-z]{{2,24}}))(?![A-Za-z0-9-])"
)
_FILES = frozenset({"css", "gif", "html", "jpeg", "jpg", "js", "json", "md", "png", "py", "svg", "ts", "webp", "yaml"})
_PACKAGE = re.compile(r"[0-9]+\.[0-9]")  # react@18.2.0-beta.rc
_REPOSITORY = re.compile(r":[\w.~-]+/")  # git@host.example:team/project


def mails(text: str) -> Iterator[Span]:
    if "@" not in text:
        return
    for found in MAIL.finditer(text):
        is_file = found[2].lower() in _FILES  # logo@2x.png
        if not is_file and not _PACKAGE.match(found[1]) and not _REPOSITORY.match(text, found.end()):
            yield Span(PiiKind.EMAIL, found.start(), found.end(), "email")
