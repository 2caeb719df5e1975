"""Every path that stores what a person states compares it with what was said before; the others are listed."""

from pathlib import Path

ROOT = Path(__file__).parents[2] / "vault"
STORING = ("cubes_add(", "memories_add(")
OTHERS = {  # module → what it stores instead
    "chat/turn_storage.py": "a turn, whose statements were compared while it was planned",
    "conversion/jobs.py": "a cache or adapter",
    "cubes/services.py": "what it is given",
    "demo/packs.py": "the packs of the demo",
    "demo/stage.py": "the past of the demo",
    "exchange/services.py": "a file, with its own history",
    "exchange/sync/received_changes.py": "the memories of another installation",
    "layers/conversation_import.py": "an old conversation",
    "layers/persona.py": "an entry that a person writes for a persona",
    "layers/services.py": "what it is given",
    "lifecycle/fusion.py": "a fused memory, or the parts of one",
    "lifecycle/services.py": "a copy",
    "pipelines/runs.py": "the result of a pipeline",
    "store/installation.py": "the memories of a pack",
    "tools/services.py": "the call of a tool",
}


def test_statements_of_people_are_compared_with_earlier_ones() -> None:
    unlike = set()
    for path in ROOT.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if any(call in text for call in STORING) and "statements_relate(" not in text:
            unlike.add(str(path.relative_to(ROOT)))
    assert unlike == set(OTHERS)
