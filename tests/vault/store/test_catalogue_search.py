"""The catalogue searched by words and by meaning, in English and Chinese."""

import pytest
from django.core.management import call_command

from governance.database import acting
from governance.jobs.services import job_create
from governance.vocabulary import Topic
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import build_version, memories_of, pack_of, publish_version
from vault.models import Listing

PACKS = {
    "first-aid": {"title": "First aid", "description": "What to do with burns, cuts and stings until help comes."},
    "python": {"title": "Python debugging", "description": "Finding faults in programs with tracebacks."},
    "plants": {"title": "House plants", "description": "Water, light and pests of plants in rooms."},
    "ji-jiu": {"title": "急救常识", "description": "烫伤、割伤和蜇伤的处理。"},
}
MEMORIES = {
    "first-aid": ("Press a clean cloth on a bleeding wound.", "Cool a scald under running water."),
    "python": ("A breakpoint halts the interpreter.",),
    "plants": ("Repot when roots circle the pot.",),
    "ji-jiu": ("伤口流血时用干净的布按压。", "噎住时做腹部冲击。"),
}


@pytest.fixture
def packs(charlie: Contract) -> None:
    for name, fields in PACKS.items():
        pack = pack_of(charlie, name, **fields)
        publish_version(charlie, build_version(charlie, pack, memories_of(charlie, *MEMORIES[name])))
    run_jobs()


def pack_names(client: Contract, text: str, more: str = "") -> list[str]:
    rows = client.get(f"publications/?q={text.replace(' ', '+')}{more}").json["results"]
    return [row["name"].removeprefix("other/") for row in rows]


@each_case(
    ("text", "first"),
    [
        ("first aid", "first-aid"),
        ("burns", "first-aid"),
        ("tracebacks of faulty programs", "python"),  # not all of its words, but much of what the pack says
        ("water for plants in rooms", "plants"),
        ("烫伤怎么办", "ji-jiu"),
        ("我想学急救", "ji-jiu"),
        ("stop a bleeding wound", "first-aid"),  # words of a memory, and of no text of the pack
        ("when to repot", "plants"),
        ("伤口流血", "ji-jiu"),
    ],
)
def test_best_match_is_first(text: str, first: str, olivia: Contract, packs: None) -> None:
    assert pack_names(olivia, text)[0] == first


def test_pack_with_all_words_comes_before_one_that_is_near_by_meaning(
    olivia: Contract, charlie: Contract, packs: None
) -> None:
    pack = pack_of(charlie, "words", title="Pests in rooms of water plants, by moonlight")
    publish_version(charlie, build_version(charlie, pack, memories_of(charlie, "Another memory.")))
    assert pack_names(olivia, "pests light rooms")[0] in {"words", "plants"}
    assert pack_names(olivia, "pests by moonlight")[0] == "words"


def test_other_orders_have_the_same_packs(olivia: Contract, packs: None) -> None:
    assert set(pack_names(olivia, "烫伤", "&order=newest")) == {"ji-jiu"}
    assert pack_names(olivia, "zither") == []


def test_vector_follows_the_texts_of_a_pack(world: World, olivia: Contract, charlie: Contract, packs: None) -> None:
    assert pack_names(olivia, "tracebacks of faulty programs")[0] == "python"
    pack = next(pack["id"] for pack in charlie.get("packs/").json["results"] if pack["name"] == "plants")
    changed = {"title": "Programs", "description": "Tracebacks of programs, and of programs that fail."}
    assert charlie.patch(f"packs/{pack}/", changed).status == 200
    run_jobs()
    assert pack_names(olivia, "tracebacks of faulty programs")[0] == "plants"
    with acting(world.charlie.actor):
        assert not Listing.objects.filter(vector=None).exists()


@pytest.mark.parametrize("model", ["", "another-model/1"])
def test_row_without_a_vector_gets_one_by_the_check_of_the_index(
    model: str, world: World, olivia: Contract, charlie: Contract, packs: None
) -> None:
    with acting(world.charlie.actor):
        Listing.objects.filter(name="python").update(vector=None, model=model)
    assert pack_names(olivia, "tracebacks of faulty programs") == []
    for repair, stale in ((False, 1), (True, 1), (True, 0)):
        job = job_create(actor=world.charlie.actor, kind=Topic.INDEX_CHECK, settings={"repair": repair})
        run_jobs()
        assert charlie.get(f"jobs/{job.id}/").json["result"].get("listings", 0) == stale
    assert pack_names(olivia, "tracebacks of faulty programs")[0] == "python"


def test_command_gives_rows_without_a_vector_one(world: World, olivia: Contract, packs: None) -> None:
    with acting(world.charlie.actor):
        Listing.objects.filter(name="python").update(vector=None, model="")
    call_command("index_check", all=True)
    run_jobs()
    assert pack_names(olivia, "tracebacks of faulty programs")[0] == "python"


def test_pages_of_the_best_matches_follow_each_other(olivia: Contract, packs: None) -> None:
    whole = pack_names(olivia, "plants")
    first = olivia.get("publications/?q=plants&page_size=1").json
    names = [row["name"] for row in first["results"]]
    while first["next"]:
        first = olivia.get("publications/" + first["next"].split("publications/")[1]).json
        names += [row["name"] for row in first["results"]]
    assert names == [f"other/{item}" for item in whole]


def test_memories_of_private_and_yanked_packs_are_searched_for_nobody_else(
    world: World, olivia: Contract, charlie: Contract, packs: None
) -> None:
    pack = pack_of(charlie, "dikes")
    version = build_version(charlie, pack, memories_of(charlie, "Sandbags close a breach."))
    publish_version(charlie, version, visibility="tenant")
    run_jobs()
    assert "dikes" not in pack_names(olivia, "sandbags for a breach")
    assert pack_names(charlie, "sandbags for a breach")[0] == "dikes"
    publish_version(charlie, version)
    assert pack_names(olivia, "sandbags for a breach")[0] == "dikes"
    assert charlie.post(f"packs/{pack}/versions/1.0.0/yank/", {"reason": "Wrong."}).status == 200
    assert "dikes" not in pack_names(olivia, "sandbags for a breach") + pack_names(charlie, "sandbags for a breach")
    with acting(world.charlie.actor):
        (row,) = Listing.objects.filter(name="dikes").values("vector", "contents", "signatures", "model")
    assert row == {"vector": None, "contents": None, "signatures": None, "model": ""}
