"""Files that people send are read in a process of their own, within bounds, and each bound has words."""

import io
import os
import threading
import time
from types import ModuleType
from typing import Any, NoReturn
from uuid import uuid4

import pytest

from governance.errors import DomainError, Invalid
from tests.factories import World
from tests.governance.mutants import mutant
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.exchange.test_exchange import CSV, CUBE, FILE_TYPE, MARKDOWN, MEM0, archive, jsonl, line
from tests.vault.exchange.test_uploads import upload_file
from tests.vault.store.hostile import valid_file
from vault.api.pack_schema import PACK_TYPE
from vault.exchange import archives, formats, items, tables
from vault.exchange.items import Item, LeftOut
from vault.store import file_process
from vault.store.file_process import run_in_file_process
from vault.vocabulary import ImportFormat

FILES = {
    "csv": CSV.replace(b"Note", b"content"),
    "jsonl": jsonl(line(1, "Ana takes the train.")),
    "markdown": archive(page=MARKDOWN),
    "mem0": MEM0,
    "mempack": valid_file(),
    "memos": archive(tree=str(CUBE).replace("'", '"').encode()),
}


@pytest.fixture
def no_reading_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process no file is opened: what reads one must be another process."""

    def fail(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("a file is read in the web process")

    for name in ("zipfile.ZipFile", "csv.reader", "vault.exchange.items.item_check"):
        monkeypatch.setattr(name, fail)
    for name in ("json_read", "item_read"):
        monkeypatch.setattr(items, name, fail)


@pytest.mark.parametrize("form", FILES)
@pytest.mark.usefixtures("no_reading_here")
def test_no_import_is_read_in_the_web_process(alice: Contract, form: str) -> None:
    checked = alice.raw(f"imports/?format={form}&dry_run=true", FILES[form], content_type=FILE_TYPE)
    assert checked.status == 200, checked
    assert alice.raw(f"imports/?format={form}", FILES[form], content_type=FILE_TYPE).status in {202, 400}


@pytest.mark.usefixtures("no_reading_here")
def test_no_upload_and_no_pack_is_read_in_the_web_process(world: World, olivia: Contract) -> None:
    browser = signed_in(world.alice)
    assert browser.get(upload_file(browser)).status_code == 200
    assert olivia.raw("packs/verify/", FILES["mempack"], content_type=PACK_TYPE).status == 200


def wide(columns: int, rows: int) -> bytes:
    head = ",".join(["content", *(f"c{number}" for number in range(1, columns))])
    return (head + "\n" + "x\n" * rows).encode()


REFUSED = [
    pytest.param("csv", wide(1_001, 1), "at most 1,000 columns", id="columns"),
    pytest.param("csv", wide(200_000, 0), "at most 1,000 columns", id="200,000 columns"),
    pytest.param("csv", b"content," + b"c" * 201 + b"\nx,y\n", "at most 200 characters", id="name of a column"),
    pytest.param("csv", wide(1_000, 0) + ("," * 999 + "\n").encode() * 2_001, "at most 2,000,000 cells", id="cells"),
    pytest.param("mem0", b"[" + b"0," * 2_000_000 + b"0]", "more than 2,000,000 values", id="values"),
    pytest.param("mem0", b'[{"memory": "a", "memory": "b"}]', "a name twice", id="repeated name"),
    pytest.param("memos", b'[{"memory": "a", "id": "1", "id": "2"}]', "a name twice", id="repeated name of a cube"),
]


@pytest.mark.parametrize(("form", "content", "words"), REFUSED)
def test_file_over_a_bound_is_refused_in_words(alice: Contract, form: str, content: bytes, words: str) -> None:
    reply = alice.raw(f"imports/?format={form}", content, content_type=FILE_TYPE)
    assert reply.status in {400, 413}
    assert words in str(reply.json)
    assert len(reply.body) < 2_000


def test_line_with_a_repeated_name_is_left_out(alice: Contract) -> None:
    twice = line(2, "Bo likes tea.").replace(b'"id"', b'"id": "a", "id"', 1)
    reply = alice.raw("imports/?format=jsonl&dry_run=true", jsonl(line(1, "x"), twice), content_type=FILE_TYPE)
    assert (reply.json["new"], [part["reason"] for part in reply.json["places"]]) == (1, ["malformed"])


def test_page_of_a_table_with_many_columns_is_small(world: World) -> None:
    names = ",".join(["content", *(f"{number:x<200}" for number in range(999))])
    browser = signed_in(world.alice)
    page = browser.get(upload_file(browser, (names + "\n" + "a," * 999 + "b\n").encode()))
    assert page.status_code == 200
    assert len(page.content) < 6 * 1024 * 1024


def test_table_of_many_rows_and_few_fields_fills_no_cells() -> None:
    """A row with too few fields gets no made-up cells: 20,000 rows of 1,000 columns hold 20,000 cells."""
    first, *others = formats.read_items(io.BytesIO(wide(1_000, 19_999)), ImportFormat.CSV)
    assert isinstance(first, Item)
    assert {part.reason for part in others if isinstance(part, LeftOut)} == {"repeated"}


# The process


def allocate(count: int) -> int:
    return len(bytearray(count))


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def end_process() -> None:
    os._exit(1)


@pytest.fixture
def started() -> None:
    run_in_file_process(uuid4(), os.getpid)


@pytest.mark.usefixtures("started")
def test_file_that_needs_too_much_memory_is_refused_and_the_next_is_read() -> None:
    with pytest.raises(Invalid, match="too long or too much memory"):
        run_in_file_process(uuid4(), allocate, 2 * file_process.MEMORY_BYTES)
    assert run_in_file_process(uuid4(), allocate, 1024) == 1024


@pytest.mark.usefixtures("started")
def test_file_that_takes_too_long_is_refused_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    run_in_file_process(uuid4(), sleep, 0.0)
    monkeypatch.setattr(file_process.PROCESS, "seconds", 0.3)
    with pytest.raises(Invalid, match="too long or too much memory"):
        run_in_file_process(uuid4(), sleep, 60.0)
    assert run_in_file_process(uuid4(), allocate, 1) == 1


@pytest.mark.full
def test_file_that_ends_the_process_is_refused_and_the_next_is_read() -> None:
    with pytest.raises(Invalid, match="in the time and memory"):
        run_in_file_process(uuid4(), end_process)
    assert run_in_file_process(uuid4(), allocate, 1) == 1


@pytest.mark.usefixtures("started")
def test_files_of_one_tenant_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second file of a tenant waits outside of the queue, where the file of another overtakes it."""
    tenant, order = uuid4(), list[str]()

    def read(name: str, tenant_id: Any) -> None:
        run_in_file_process(tenant_id, sleep, 0.3)
        order.append(name)

    first, second, other = (
        threading.Thread(target=read, args=args) for args in (("first", tenant), ("second", tenant), ("other", uuid4()))
    )
    for thread in (first, second, other):
        thread.start()
        time.sleep(0.05)
    for thread in (first, second, other):
        thread.join(30)
    assert order == ["first", "other", "second"]


# Broken on purpose


def refuses(module: ModuleType, content: bytes) -> bool:
    with archives.documents_open(io.BytesIO(content)) as documents:
        try:
            list(module.csv_entries(documents, {}))
        except DomainError:
            return True
    return False


@pytest.mark.parametrize(
    ("rule", "broken", "content"),
    [
        ("len(names) > MOST_COLUMNS", "False", wide(1_001, 1)),
        ("cells > MOST_CELLS", "False", wide(1_000, 0) + ("," * 999 + "\n").encode() * 2_001),
    ],
)
def test_reader_without_a_bound_lets_a_file_pass(rule: str, broken: str, content: bytes) -> None:
    assert refuses(tables, content)
    assert not refuses(mutant(tables, rule, broken), content)
