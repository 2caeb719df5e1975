"""Files of MemoryOS and LoCoMo become memories and pages, once."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from governance.database import acting
from tests.benchmarks.conftest import sample
from tests.factories import World
from vault.models import Cube, Page

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


def imported(world: World, path: Path, form: str) -> dict[str, int]:
    out = StringIO()
    named = {"tenant": "acme", "member": "alice@acme.example", "format": form, "json": True}
    call_command("conversations_import", str(path), stdout=out, **named)
    report: dict[str, int] = json.loads(out.getvalue())
    return report


def test_memoryos_folder_becomes_pages_in_order_and_facts(world: World, folder: Path) -> None:
    report = imported(world, folder, "memoryos")
    assert (report["messages"], report["facts"], report["profiles"], report["skipped"]) == (5, 1, 0, 2)
    with acting(world.alice.actor):
        pages = list(Page.objects.order_by("position"))
        assert [page.at.day for page in pages] == [1, 2, 3]
        assert pages[-1].response_id is None  # a provider's failure is no answer
        assert {cube.source for cube in Cube.objects.all()} == {"import"}


def test_second_import_stores_nothing_twice(world: World, folder: Path) -> None:
    first = imported(world, folder, "memoryos")
    again = imported(world, folder, "memoryos")
    assert (again["messages"], again["facts"]) == (0, 0)
    assert again["present"] >= first["messages"] + first["facts"]
    with acting(world.alice.actor):
        assert Page.objects.count() == 3


def test_locomo_file_becomes_a_stream_for_each_session(world: World, tmp_path: Path) -> None:
    path = tmp_path / "made-up.json"
    path.write_text(json.dumps([sample("conv-26")]), encoding="utf-8")
    assert imported(world, path, "locomo")["messages"] == 4
    with acting(world.alice.actor):
        assert Page.objects.exclude(query=None).exclude(response=None).count() == 2
        assert Page.objects.values("stream").distinct().count() == 2


@pytest.mark.parametrize("content", ["{", "[1]", '[{"conversation": {}}]'])
def test_file_of_another_layout_is_refused_in_one_line(world: World, tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content, encoding="utf-8")
    if content != '[{"conversation": {}}]':
        with pytest.raises(CommandError, match="not in LoCoMo's layout"):
            imported(world, path, "locomo")
    with pytest.raises(CommandError, match="holds no"):
        imported(world, tmp_path, "memoryos")


def test_viewer_imports_nothing(world: World, folder: Path) -> None:
    with pytest.raises(CommandError):
        call_command("conversations_import", str(folder), tenant="acme", member="bob@acme.example", format="memoryos")
    with acting(world.bob.actor):
        assert not Page.objects.exists()
