"""Row 17: a hostile file is refused in a moment, with little memory, and leaves no row."""

import resource
import time
from collections.abc import Callable
from uuid import UUID

import psycopg
import pytest

from governance.errors import DomainError
from tests.harness.cases import each_case
from tests.harness.evidence import Evidence
from tests.vault.api.contract import Contract
from tests.vault.store.hostile import ITEMS, KEY, PUBLIC, STATED, hostile_files, valid_file
from vault.api.packs import PACK_TYPE
from vault.store.files import Item, PackInvalid, file_read, file_write, item_digest

Superuser = Callable[[], psycopg.Connection]
SECONDS, MEBIBYTES, LEAST = 2.0, 64, 60
FILES = dict(hostile_files())
TABLES = ("vault_cube", "vault_pack", "vault_packversion")


def test_file_that_is_written_is_read_back_equal() -> None:
    found = file_read(valid_file())
    assert found.items == ITEMS
    assert (found.manifest.name, found.manifest.count) == ("acme/herons", 2)
    assert found.manifest.digests == {str(item.id): item_digest(item) for item in ITEMS}


def test_equal_content_makes_an_equal_file() -> None:
    assert valid_file() == valid_file()


def test_chinese_text_is_read_back_equal() -> None:
    items = (Item(UUID(int=3), "烫伤后用流动冷水冲 20 分钟。", title="烫伤", language="zh"),)
    assert file_read(file_write(STATED, items, public_key=PUBLIC, sign=KEY.sign)).items == items


@each_case("name", sorted(FILES))
def test_hostile_file_is_refused(name: str) -> None:
    with pytest.raises(DomainError) as raised:
        file_read(FILES[name])
    assert 400 <= raised.value.status < 500
    assert isinstance(raised.value, PackInvalid) or raised.value.status == 413


def test_hostile_files_are_refused_in_time_with_little_memory_and_leave_no_row(
    olivia: Contract, superuser: Superuser, evidence: Evidence
) -> None:
    assert len(FILES) >= LEAST
    assert olivia.raw("packs/verify/", valid_file(), content_type=PACK_TYPE).status == 200
    root = superuser()
    before, most, slowest = _rows(root), 0, 0.0
    for name, content in FILES.items():
        peak, start = _peak(), time.monotonic()
        reply = olivia.raw("packs/verify/", content, content_type=PACK_TYPE)
        slowest = max(slowest, time.monotonic() - start)
        most = max(most, _peak() - peak)
        assert 400 <= reply.status < 500, (name, reply)
    assert _rows(root) == before
    assert slowest <= SECONDS
    assert most <= MEBIBYTES * 1024
    figures = {"files": len(FILES), "refused with 4xx": len(FILES), "rows": 0, "slowest_s": round(slowest, 2)}
    evidence(row=17, name="hostile-files", figures=figures | {"most_memory_mib": round(most / 1024)})


def _peak() -> int:
    """The most memory that this process ever had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _rows(root: psycopg.Connection) -> list[int]:
    return [root.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in TABLES]
