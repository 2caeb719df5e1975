"""Files of MemoryOS and LoCoMo become memories and pages, once."""

import json
import os
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from governance.database import acting
from tests.benchmarks.conftest import sample
from tests.factories import World
from vault.models import Cube, Page

SHARED = Path(settings.BASE_DIR).parent / "shared" / "data" / "locomo" / "locomo-dev5.json"
NAMED = Path(os.environ.get("LOCOMO_FILE", SHARED))
LOCOMO = NAMED if NAMED.is_file() else None
SHORT = [
    {"user_input": "I adopted a dog named Max.", "agent_response": "Lovely!", "timestamp": "2026-05-02 10:00:00"},
    {
        "user_input": "And a cat.",
        "agent_response": "Error: Could not get response from LLM.",
        "timestamp": "2026-05-03 10:00:00",
    },
]
MID = {"sessions": {"s1": {"summary": "Oslo", "details": [
    {"user_input": "I live in Oslo.", "agent_response": "Noted.", "timestamp": "2026-05-01 10:00:00"},
]}}}  # fmt: skip
LONG = {
    "user_profiles": {"maya": {"data": "None"}},
    "knowledge_base": [{"knowledge": "- Has a dog Max: adopted 2026"}, {"knowledge": "- None"}],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in (("short_term", SHORT), ("mid_term", MID), ("long_term_user", LONG)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return tmp_path


def import_file(world: World, path: Path, form: str) -> dict[str, Any]:
    out = StringIO()
    named = {"tenant": "acme", "member": "alice@acme.example", "format": form, "json": True}
    call_command("conversations_import", str(path), stdout=out, **named)
    report: dict[str, Any] = json.loads(out.getvalue())
    return report


def test_memoryos_folder_becomes_pages_in_order_and_facts(world: World, folder: Path) -> None:
    report = import_file(world, folder, "memoryos")
    assert (report["messages"], report["pages"], report["facts"], report["profiles"]) == (5, 3, 1, 0)
    assert report["skipped"] == 3  # a failure of a provider, and two lines that say nothing
    with acting(world.alice.actor):
        pages = list(Page.objects.order_by("position"))
        assert [page.at.day for page in pages] == [1, 2, 3]
        assert pages[-1].response_id is None  # a provider's failure is no answer
        assert {cube.source for cube in Cube.objects.all()} == {"import"}


def test_times_as_locomo_writes_them_are_read_and_others_left_out(world: World, tmp_path: Path) -> None:
    pages = [
        {"user_input": "We met in Porto.", "agent_response": "Nice.", "timestamp": "1:56 pm on 8 May, 2023"},
        {"user_input": "We met in Oslo.", "agent_response": "Nice.", "timestamp": "once upon a time"},
    ]
    (tmp_path / "short_term.json").write_text(json.dumps(pages), encoding="utf-8")
    assert import_file(world, tmp_path, "memoryos")["pages"] == 2
    with acting(world.alice.actor):
        undated, dated = Page.objects.select_related("query").order_by("position")
        assert dated.at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
        assert undated.query is not None
        assert (undated.query.event_time, undated.at) == (None, undated.query.created_at)


def test_second_import_stores_nothing_twice(world: World, folder: Path) -> None:
    first = import_file(world, folder, "memoryos")
    again = import_file(world, folder, "memoryos")
    assert (again["messages"], again["pages"], again["facts"]) == (0, 0, 0)
    assert again["present"] >= first["messages"] + first["facts"]
    with acting(world.alice.actor):
        assert Page.objects.count() == 3


def test_locomo_file_becomes_a_stream_for_each_session(world: World, tmp_path: Path) -> None:
    path = tmp_path / "made-up.json"
    path.write_text(json.dumps([sample("conv-26")]), encoding="utf-8")
    assert import_file(world, path, "locomo")["messages"] == 4
    with acting(world.alice.actor):
        assert Page.objects.exclude(query=None).exclude(response=None).count() == 2
        assert Page.objects.values("stream").distinct().count() == 2


def test_report_of_a_locomo_file_counts_what_it_left_out(world: World, tmp_path: Path) -> None:
    conversation = sample("conv-26")
    conversation["conversation"]["session_1"][0]["img_url"] = ["https://pictures.example/1.jpg"]
    conversation["conversation"]["session_2"][1]["text"] = " "
    path = tmp_path / "made-up.json"
    path.write_text(json.dumps([conversation]), encoding="utf-8")
    report = import_file(world, path, "locomo")
    assert (report["messages"], report["pages"], report["skipped"], report["pictures"]) == (3, 2, 1, 1)
    assert report["left_out"] == {"says_nothing": 1, "no_words": 1, "beside": 1}
    assert {"place": "turn D2:2", "reason": "says_nothing"} in report["places"]


@pytest.mark.apart(LOCOMO is not None, "a LoCoMo file: set LOCOMO_FILE to its path")
def test_report_of_a_published_conversation_is_true(world: World, tmp_path: Path) -> None:
    assert LOCOMO is not None
    published = json.loads(LOCOMO.read_text(encoding="utf-8"))[0]
    spoken = published["conversation"]
    kept = {name: part for name, part in spoken.items() if not name.startswith("session_")}
    for name in ("session_1", "session_2"):
        kept |= {name: spoken[name], f"{name}_date_time": spoken[f"{name}_date_time"]}
    path = tmp_path / "published.json"
    path.write_text(json.dumps([{**published, "conversation": kept}]), encoding="utf-8")
    turns = [*kept["session_1"], *kept["session_2"]]
    report = import_file(world, path, "locomo")
    said = [turn for turn in turns if turn["text"].strip()]
    assert (report["messages"], report["skipped"]) == (len(said), len(turns) - len(said))
    assert report["pictures"] == sum("img_url" in turn for turn in turns)
    with acting(world.alice.actor):
        cubes = Cube.objects.all()
        assert cubes.count() == report["messages"] + report["derived"]
        assert Page.objects.count() == report["pages"]
        assert cubes.filter(has_sources=True).count() == report["derived"]
        sides = Page.objects.values_list("query_id", "response_id")
        assert sum(side is not None for pair in sides for side in pair) == report["messages"]
    again = import_file(world, path, "locomo")
    assert (again["messages"], again["pages"], again["derived"]) == (0, 0, 0)
    assert again["present"] >= report["messages"]


@pytest.mark.parametrize("content", ["{", "[1]", '[{"conversation": {}}]'])
def test_file_of_another_layout_is_refused_in_one_line(world: World, tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content, encoding="utf-8")
    if content != '[{"conversation": {}}]':
        with pytest.raises(CommandError, match="not in LoCoMo's layout"):
            import_file(world, path, "locomo")
    with pytest.raises(CommandError, match="holds no"):
        import_file(world, tmp_path, "memoryos")


def test_viewer_imports_nothing(world: World, folder: Path) -> None:
    with pytest.raises(CommandError):
        call_command("conversations_import", str(folder), tenant="acme", member="bob@acme.example", format="memoryos")
    with acting(world.bob.actor):
        assert not Page.objects.exists()
