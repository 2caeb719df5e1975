"""Tables: the encoding, the separator, the columns and the dates of a CSV file. A bad cell costs a cell. Pure."""

import codecs
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import chain

from governance.errors import FieldError, Invalid, TooLarge
from vault.exchange.archives import Document, Entries, moment_read, text_item, unfit_entry
from vault.exchange.items import Item, Unfit, is_broken

CONTENT_NAMES = ("content", "text", "memory", "note", "body")
TIME_NAMES = ("event_time", "created_at", "date", "timestamp")
COLUMNS = ("id", "content", "title", "tags", "namespace", "event_time", "speaker", "session_id", "subject", "persona")
LONGEST = {"title": 500, **dict.fromkeys(("id", "namespace", "speaker", "session_id", "subject", "persona"), 200)}
LABELS = ("namespace", "speaker", "session_id", "subject", "persona")
LONGEST_COLUMN = 200  # characters of a name
LONGEST_TAG, MOST_TAGS = 100, 50
MOST_COLUMNS, MOST_CELLS = 1_000, 2_000_000  # of a table
LOOKED_AT = 256 * 1024  # bytes, for the encoding
SEPARATORS = ",;\t"
EXCEL_HEADING = "sep="  # the line by which Excel names the separator
EXCEL_EPOCH = datetime(1899, 12, 30)
EXCEL_DAYS = (20_000, 80_000)  # from 1954 to 2119
DATE_FORMS = ("%d.%m.%Y", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%Y年%m月%d日")
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")

Columns = Mapping[str, str]


def csv_entries(documents: Sequence[Document], columns: Columns) -> Entries:
    """The rows of a table. columns: our name to the file's own. Raises Invalid; TooLarge."""
    for document in documents:
        with _open_rows(document) as rows:
            names = next(rows, [])
            places = {ours: names.index(theirs) for ours, theirs in _choose_columns(names, columns).items()}
            cells = 0
            for number, row in enumerate(rows, 1):
                cells += len(row)
                if cells > MOST_CELLS:
                    raise TooLarge(f"A table has at most {MOST_CELLS:,} cells. Split it.")
                place = f"row {number}{document.place}"
                values = {ours: row[at].strip() for ours, at in places.items() if at < len(row)}
                if len(row) > len(names):
                    yield f"cell {len(names) + 1} of {place}", unfit_entry("malformed")
                for name, reason in _drop_bad_cells(values).items():
                    yield f"{name} of {place}", unfit_entry(reason)
                yield place, partial(_read_row, values)


def table_columns(document: Document) -> tuple[list[str], dict[str, str]]:
    """The names in the first row, and the file's column by our name as far as it can be guessed. Raises Invalid."""
    with _open_rows(document) as rows:
        names = next(rows, [])
    return names, _guess_columns(names)


@contextmanager
def _open_rows(document: Document) -> Iterator[Iterator[list[str]]]:
    """The rows that are not empty. Raises Invalid, also while they are read."""
    with document.stream() as start:
        encoding = _guess_encoding(start.read(LOOKED_AT))
    with io.TextIOWrapper(document.stream(), encoding, newline="") as text:
        try:
            first = text.readline(LOOKED_AT)
            heading = first.strip().lower()
            if heading.startswith(EXCEL_HEADING) and len(heading) == len(EXCEL_HEADING) + 1:
                separator, lines = heading[-1], iter(text)
            else:
                separator, lines = max(SEPARATORS, key=first.count), chain([first] if first else [], text)
            yield filter(None, csv.reader(map(_refuse_nul, lines), delimiter=separator, strict=True))
        except (csv.Error, UnicodeError) as error:
            raise Invalid("The file is no readable CSV.") from error


def _refuse_nul(line: str) -> str:
    if "\x00" in line:
        raise Invalid("The file has a NUL.")
    return line


def _guess_encoding(start: bytes) -> str:
    """The encoding of a table: Unicode, GB18030, or what Windows writes in western Europe."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if start.startswith(mark):
            return name
    for name in ("utf-8", "gb18030"):
        try:
            codecs.getincrementaldecoder(name)().decode(start)
        except UnicodeError:
            continue
        if name == "utf-8" or _has_pairs(start):
            return name
    return "cp1252" if not set(start) & {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "latin-1"


def _has_pairs(start: bytes) -> bool:
    """Return whether bytes beyond ASCII stand in groups, as in Chinese, and not alone, as letters with accents do."""
    high = [byte > 0x7F for byte in start]
    alone = sum(
        now and not before and not after
        for before, now, after in zip([False, *high], high, [*high[1:], False], strict=False)
    )
    return alone * 5 < sum(high)


def _choose_columns(names: list[str], asked: Columns) -> dict[str, str]:
    """Map our field names to the file's columns; an empty choice drops a guessed column. Raises Invalid."""
    found, taken = _guess_columns(names), {ours: theirs for ours, theirs in asked.items() if theirs}
    faults = [FieldError("columns", f"unknown field: {ours}"[:100]) for ours in asked if ours not in COLUMNS]
    faults += [
        FieldError("columns", f"the file has no column {theirs}"[:100])
        for theirs in taken.values()
        if theirs not in names
    ]
    if faults:
        raise Invalid(errors=faults)
    found = {ours: theirs for ours, theirs in found.items() if ours not in asked} | taken
    if "content" not in found:
        raise Invalid(errors=[FieldError("columns", f"name the column of the text: one of {', '.join(CONTENT_NAMES)}")])
    return found


def _guess_columns(names: list[str]) -> dict[str, str]:
    """Guess the file's column for each of our field names. Raises Invalid."""
    if len(names) > MOST_COLUMNS:
        raise Invalid(f"A table has at most {MOST_COLUMNS:,} columns.")
    if any(len(name) > LONGEST_COLUMN for name in names):
        raise Invalid(f"The name of a column has at most {LONGEST_COLUMN} characters.")
    if len(set(names)) != len(names) or not names:
        raise Invalid("The first row must name each column once.")
    by_name = {name.strip().casefold(): name for name in reversed(names)}
    found = {name: by_name[name] for name in COLUMNS if name in by_name}
    for ours, candidates in (("content", CONTENT_NAMES), ("event_time", TIME_NAMES)):
        theirs = next((by_name[name] for name in candidates if name in by_name), None)
        if theirs is not None:
            found.setdefault(ours, theirs)
    return found


def _drop_bad_cells(values: dict[str, str]) -> dict[str, str]:
    """Remove the cells that cannot be read, other than the text; the reason of each by its name."""
    bad: dict[str, str] = {}
    for name, value in values.items():
        if name != "content" and is_broken(value):
            bad[name] = "broken_text"
        elif len(value) > LONGEST.get(name, len(value)):
            bad[name] = "too_long"
        elif name == "event_time" and value and _read_date(value) is None:
            bad[name] = "bad_time"
        elif name == "tags" and any(len(tag) > LONGEST_TAG for tag in _split_tags(value)):
            bad[name] = "too_long"
    for name in bad:
        del values[name]
    return bad


def _read_row(values: Mapping[str, str]) -> Item:
    """values: of our columns. Raises Unfit."""
    return text_item(
        values.get("content", ""),
        id=values.get("id", ""),
        title=values.get("title", ""),
        tags=_split_tags(values.get("tags", ""))[:MOST_TAGS],
        at=_read_date(values.get("event_time", "")),
        labels={name: values[name] for name in LABELS if values.get(name)},
    )


def _read_date(text: str) -> str | None:
    """A date as programs write it into tables, in ISO 8601: Excel's days, and `1.5.2026`, `2026/5/1`, `5/1/2026`."""
    try:
        moment = moment_read(text)
    except Unfit:
        moment = None
    moment = moment or _read_number(text) or _read_form(text)
    return moment.isoformat() if moment else None


def _read_number(text: str) -> datetime | None:
    """A number of days since Excel's epoch, or of seconds or milliseconds since 1970."""
    try:
        number = float(text)
        if EXCEL_DAYS[0] <= number <= EXCEL_DAYS[1]:
            return EXCEL_EPOCH + timedelta(seconds=round(number * 86_400))
        return moment_read(number) if number > EXCEL_DAYS[1] else None
    except (ValueError, OverflowError, Unfit):
        return None


def _read_form(text: str) -> datetime | None:
    for form in (date + clock for date in DATE_FORMS for clock in CLOCKS):
        try:
            return datetime.strptime(" ".join(text.split()), form)
        except ValueError:
            continue
    return None


def _split_tags(text: str) -> tuple[str, ...]:
    parts = text.split(";") if ";" in text else text.split(",")
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
