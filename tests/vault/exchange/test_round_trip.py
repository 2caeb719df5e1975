"""An export of all that a tenant has, imported into an empty one: equal contents, versions and lineage, no grants."""

import json
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import psycopg

from governance.database import acting
from tests.factories import World
from tests.governance.access.grants.test_grants import give_grant
from tests.harness.evidence import Evidence
from tests.vault.api.contract import Contract
from tests.vault.exchange.test_exchange import export_file, import_file
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeChanges, CubeDraft, SourceRef
from vault.cubes.services import cube_update, cubes_add
from vault.exchange.items import ORIGIN, ORIGIN_FORMAT
from vault.models import Cube, CubeGrant
from vault.vocabulary import SemanticType, SourceKind

Superuser = Callable[[], psycopg.Connection]
FULL, CI = 10_000, 300
BATCH = 500
SHARE = 10  # one memory in so many has more versions, and one in so many is made from two others


def test_export_imported_into_an_empty_tenant_is_the_same_and_without_grants(
    world: World, alice: Contract, charlie: Contract, superuser: Superuser, full_size: bool, evidence: Evidence
) -> None:
    size = FULL if full_size else CI
    fill(world, size)
    run_jobs()
    superuser().execute("ANALYZE")  # as autovacuum would, which tests run without
    first = alice.get("memories/?page_size=1").json["results"][0]["id"]
    give_grant(alice, world, "bob", "memory", first)
    assert charlie.get("memories/").json["results"] == []

    started = time.perf_counter()
    file = export_file(alice)
    written = time.perf_counter() - started
    started = time.perf_counter()
    counts = import_file(charlie, file, format="jsonl")["counts"]
    read = time.perf_counter() - started

    before, after = digests(file), digests(export_file(charlie))
    assert counts["stored"] == len(before) == size
    assert (counts["origins_missing"], counts["held"], counts["quarantined"]) == (0, 0, 0)
    assert after == before
    with acting(world.alice.actor):
        assert CubeGrant.objects.count() == 1
    with acting(world.charlie.actor):
        assert Cube.objects.count() == size
        assert CubeGrant.objects.count() == 0
    again = import_file(charlie, file, format="jsonl")["counts"]
    assert (again["stored"], again["present"]) == (0, size)
    figures = {"memories": size, "versions": sum(len(row[0]) for row in before), "export_s": written, "import_s": read}
    origins = sum(len(row[1]) for row in before)
    evidence(row=25, name="round-trip", figures={**figures, "origins": origins, "bytes": len(file), "differences": 0})


def test_a_lost_version_a_changed_word_or_another_origin_shows() -> None:
    """The comparison itself: each difference changes the digests."""
    words = [{"content": "One.", "metadata": {}}, {"content": "Two.", "metadata": {}}]
    items: list[dict[str, Any]] = [
        {"id": "a", "versions": words, "made_from": []},
        {"id": "b", "versions": words[:1], "made_from": [{"id": "a", "version": 2, "kind": "extract"}]},
    ]

    def file(*changed: dict[str, Any]) -> bytes:
        return b"\n".join([b"{}", *(json.dumps(item).encode() for item in changed)])

    whole = digests(file(*items))
    assert digests(file({**items[0], "id": "c"}, {**items[1], "made_from": [items[1]["made_from"][0] | {"id": "c"}]}))
    for changed in (
        [{**items[0], "versions": words[:1]}, items[1]],
        [{**items[0], "versions": [words[0], words[1] | {"content": "2."}]}, items[1]],
        [items[0], {**items[1], "made_from": []}],
        [items[0], {**items[1], "made_from": [items[1]["made_from"][0] | {"version": 1}]}],
        items[:1],
    ):
        assert digests(file(*changed)) != whole


def fill(world: World, size: int) -> None:
    """Memories with every field that travels, some with three versions, some made from the two before them."""
    actor = world.alice.actor
    ids = list[Any]()
    for start in range(0, size, BATCH):
        drafts = [draft(number, ids) for number in range(start, min(size, start + BATCH))]
        added = [cube.cube.id for cube in cubes_add(actor=actor, drafts=drafts)]
        ids += added
        for cube_id in added[::SHARE]:
            for number in (1, 2):
                changes = CubeChanges(content=f"Change {name(number)} of {name(cube_id.int)}.", tags=("changed",))
                cube_update(actor=actor, cube_id=cube_id, expected_versions={number}, changes=changes, reason="a test")


def name(number: int) -> str:
    """A word for each number: sentences that differ in numbers alone would contradict each other."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def draft(number: int, ids: list[Any]) -> CubeDraft:
    has_origins = number % SHARE == SHARE - 1 and len(ids) > 1
    origins = [ids[(number * 7) % len(ids)], ids[-1]] if has_origins else []
    return CubeDraft(
        content=f"The heron {name(number)} nests by the mill.",
        title=f"Heron {name(number)}",
        namespace="/birds" if number % 2 else None,
        tags=("bird", f"mill-{number % 7}"),
        metadata={"number": number, "nested": {"mill": [number % 97]}},
        session_id=f"session-{number // 20}",
        speaker="Ana",
        importance=(number % 11) / 10,
        semantic_type=SemanticType.EVENT,
        sources=tuple(SourceRef(fromkey, 1, SourceKind.EXTRACT) for fromkey in dict.fromkeys(origins)),
    )


def digests(file: bytes) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """For each memory of a file, the digests of its versions, and of its origins with version and kind."""
    items = [json.loads(line) for line in file.splitlines()[1:]]
    by_id = {item["id"]: item for item in items}
    return sorted((_versions(item), tuple(sorted(_origin(row, by_id) for row in item["made_from"]))) for item in items)


def _versions(item: dict[str, Any]) -> tuple[str, ...]:
    labels = [item.get(name) for name in ("namespace", "subject", "speaker", "session_id", "message_id", "task_id")]
    return tuple(
        sha256(json.dumps([labels, _without_origin(version)], sort_keys=True).encode()).hexdigest()
        for version in item["versions"]
    )


def _without_origin(version: dict[str, Any]) -> dict[str, Any]:
    """Without the two fields that tell where an imported memory came from."""
    own = {name: value for name, value in version["metadata"].items() if name not in {ORIGIN, ORIGIN_FORMAT}}
    return {**version, "metadata": own}


def _origin(version: dict[str, Any], by_id: dict[str, Any]) -> str:
    return json.dumps([_versions(by_id[version["id"]]), version["version"], version["kind"]])
