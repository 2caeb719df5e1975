"""The forms of a page, and made-up input for them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from random import Random
from urllib.parse import quote_from_bytes, urlsplit

BUTTONS = frozenset({"button", "image", "reset"})
HOSTILE = (
    b"",
    b" ",
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",  # half of a surrogate pair
    b"a" * 70_000,
    "é".encode() * 300,
    "\u202eabc\u0301\u0301\u0301😀".encode(),
    b"-1",
    b"0",
    b"1.5",
    b"1e999",
    b"NaN",
    b"99999999999999999999",
    b"\xd9\xa3",  # the Arabic digit three
    b"true",
    b"null",
    b"{",
    b'{"a": [',
    b"[]",
    b'"',
    b"'",
    b"%",
    b"%00",
    b"a\r\nSet-Cookie: a=b",
    b"../../etc/passwd",
    b"//other.example/",
    b"//[",
    b"0001-01-01",
    b"9999-12-31T23:59",
    b"javascript:alert(1)",
    b"<script>alert(1)</script>",
    b"/",
    b"/a/../b",
    b"00000000-0000-0000-0000-000000000000",
    b"not-a-uuid",
    b"2026-02-30",
    b"0001-01-01T00:00",
    b"9999-12-31T23:59:59.999999Z",
    b"2026-13-01T25:61",
    b"-P99999D",
    b"* * * * * *",
    b"@localhost",
    b"king",
)


@dataclass(frozen=True)
class Form:
    """A form as a browser sees it: where it goes to, and its fields with the values of the page."""

    method: str
    action: str
    fields: tuple[tuple[str, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted({name for name, _ in self.fields}))


@dataclass
class _Open:
    method: str
    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)


class _Reader(HTMLParser):
    """Collects forms, and elements outside of them that htmx sends."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.forms: list[_Open] = []
        self._open: _Open | None = None
        self._select = self._area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "hx-post" in given and tag != "form":
            self.forms.append(_Open("post", given["hx-post"]))
        if tag == "form":
            to_htmx = given.get("hx-post")
            action = to_htmx or given.get("action") or self.address
            self._open = _Open("post" if to_htmx else given.get("method", "get").lower(), action)
            self.forms.append(self._open)
        elif self._open is not None and given.get("name"):
            self._field(tag, given)
        elif tag == "option" and self._select and self._open is not None:
            self._open.fields.append((self._select, given.get("value", "")))

    def _field(self, tag: str, given: dict[str, str]) -> None:
        assert self._open is not None
        if tag == "select":
            self._select = given["name"]
        elif tag == "textarea":
            self._area = given["name"]
            self._open.fields.append((self._area, "text"))
        elif tag in {"input", "button"} and given.get("type") not in BUTTONS:
            self._open.fields.append((given["name"], given.get("value", "")))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None
        elif tag == "select":
            self._select = ""


def forms_of(page: str, address: str) -> Iterator[Form]:
    """The forms of `page`, which lies at `address`, that stay on this site."""
    reader = _Reader(address)
    reader.feed(page)
    for form in reader.forms:
        target = urlsplit(form.action)
        if not target.netloc:
            yield Form(form.method, target.path or urlsplit(address).path, tuple(form.fields))


def submissions(form: Form, random: Random, count: int) -> Iterator[bytes]:
    """`count` urlencoded bodies: one to all of the fields hostile, doubled or missing, the others as on the page."""
    for _ in range(count):
        sent = {name: [random.choice([v for n, v in form.fields if n == name]).encode()] for name in form.names}
        for name in random.sample(form.names, random.randint(1, len(form.names))) if form.names else ():
            sent[name] = random.choices(HOSTILE, k=random.choice((0, 1, 1, 1, 2)))
        sent.setdefault("unexpected", [random.choice(HOSTILE)])
        yield b"&".join(
            f"{quote_from_bytes(name.encode())}={quote_from_bytes(value)}".encode()
            for name, values in sent.items()
            for value in values
        )
