"""Copies of a pack that name their recipient: both wordings scanned and signed, one delivered, a leak traced."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from governance.database import acting
from tests.factories import World
from tests.vault.api.contract import Contract, contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import build_version, pack_of, publish_version, subscribe
from vault.api.pack_schema import PACK_TYPE
from vault.models import PackVersion
from vault.store.files import PackInvalid, file_copy, file_read
from vault.store.selectors import version_file
from vault.store.wordings import has_second, wordings_open

PLACE = "/packs/acme/herons"
COUNT = 12


def add_marked_memory(client: Contract, number: int, **wordings: str) -> str:
    """A memory whose second sentence is marked."""
    sentence = f"It returns in March to pool {number}."
    stated = {"sentence": sentence, "second": f"In March it is back at pool {number}.", **wordings}
    text = f"Heron {number} is grey. {sentence} It eats fish."
    return str(client.add(text, namespace="/birds", metadata={"wordings": stated})["id"])


def offer_marked_pack(client: Contract, count: int = COUNT) -> tuple[str, str]:
    """The pack and its publication, with a marked sentence in each memory."""
    pack = pack_of(client)
    version = build_version(client, pack, [add_marked_memory(client, number) for number in range(count)])
    assert (version["state"], version["report"]["marked"]) == ("ready", count)
    return pack, publish_version(client, version)["id"]


def texts_of(client: Contract) -> list[str]:
    return client.search_contents("heron", namespaces=[PLACE], top_k=50)


def test_leaked_copy_names_its_recipient(world: World, olivia: Contract, charlie: Contract) -> None:
    pack, publication = offer_marked_pack(olivia)
    for client in (olivia, charlie):
        subscribe(client, publication)
    theirs, ours = texts_of(charlie), texts_of(olivia)
    assert (len(theirs), len(ours)) == (COUNT, COUNT)
    assert theirs != ours
    trace = olivia.post(f"packs/{pack}/trace/", {"text": "\n".join(theirs)}).json
    assert (trace["marked"], trace["compared"]) == (COUNT, COUNT)
    first, second = trace["candidates"]
    assert (first["subscriber"], first["matching"], first["contract"]) == ("Other", COUNT, "active")
    assert (first["probability"] > 0.99, second["probability"] < 0.01) == (True, True)


def test_changed_copy_still_names_its_recipient_and_an_own_text_names_nobody(
    olivia: Contract, charlie: Contract
) -> None:
    pack, publication = offer_marked_pack(olivia)
    subscribe(charlie, publication)
    leaked = texts_of(charlie)
    half = "  ".join(reversed(leaked[: COUNT // 2])).upper().replace(".", " !")
    trace = olivia.post(f"packs/{pack}/trace/", {"text": half}).json
    (found,) = trace["candidates"]
    assert (found["matching"], trace["compared"]) == (COUNT // 2, COUNT // 2)
    assert found["probability"] > 0.9
    nothing = olivia.post(f"packs/{pack}/trace/", {"text": "Herons are grey."}).json
    assert (nothing["compared"], nothing["candidates"][0]["probability"]) == (0, 0.5)


def test_both_wordings_are_signed_and_the_delivered_file_verifies(
    world: World, olivia: Contract, charlie: Contract
) -> None:
    _, publication = offer_marked_pack(olivia)
    subscribe(charlie, publication)
    (agreed,) = olivia.get("contracts/").json["results"]
    with acting(world.olivia.actor):
        version = PackVersion.objects.get(number="1.0.0")
        wordings = wordings_open(version)
    content = olivia.get(f"contracts/{agreed['id']}/file/").body
    copy = file_read(content)
    assert len(copy.manifest.alternatives) == COUNT
    assert sorted(item.content for item in copy.items) == sorted(texts_of(charlie))
    for item in copy.items:
        has = has_second(world.acme.id, world.other.id, item.id)
        assert (item.content == wordings[item.id].content) == has
    assert charlie.raw("packs/verify/", content, content_type=PACK_TYPE).status == 200


def test_copy_with_a_third_wording_is_refused(world: World, olivia: Contract) -> None:
    pack, _ = offer_marked_pack(olivia, 2)
    with acting(world.olivia.actor):
        version = PackVersion.objects.get(pack_id=UUID(pack))
    file = file_read(version_file(actor=world.olivia.actor, version_id=version.id))
    changed = (replace(file.items[0], content="Another text."), *file.items[1:])
    with pytest.raises(PackInvalid):
        file_read(file_copy(file, changed))


@pytest.mark.parametrize(
    ("second", "state"),
    [("Ask ana@birds.example when it is back.", "blocked"), ("Then it is back.", "ready")],
)
def test_second_wording_passes_the_same_scan(second: str, state: str, olivia: Contract) -> None:
    pack = pack_of(olivia)
    memory = add_marked_memory(olivia, 1, second=second)
    version = build_version(olivia, pack, [memory])
    assert version["state"] == state
    blocked = [row["kinds"] for row in version["report"]["blocked"]]
    assert blocked == ([["email"]] if state == "blocked" else [])


@pytest.mark.parametrize(
    "wordings",
    [{"sentence": "It is not there."}, {"second": "It returns in MARCH, to pool 1!"}, {"sentence": ""}],
)
def test_sentence_with_equal_wordings_is_not_marked(wordings: dict[str, str], olivia: Contract) -> None:
    version = build_version(olivia, pack_of(olivia), [add_marked_memory(olivia, 1, **wordings)])
    assert (version["state"], version["report"]["marked"]) == ("ready", 0)


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("bob", 403), ("charlie", 404)])
def test_trace_and_copies_are_refused_to_others(
    who: str, status: int, world: World, olivia: Contract, charlie: Contract
) -> None:
    pack, publication = offer_marked_pack(olivia, 2)
    subscribe(charlie, publication)
    (agreed,) = olivia.get("contracts/").json["results"]
    client = contract(world, who)
    assert client.post(f"packs/{pack}/trace/", {"text": "x"}).status == status
    assert client.get(f"contracts/{agreed['id']}/file/").status == status


def test_upgrade_without_changes_compares_equal_wordings(olivia: Contract, charlie: Contract) -> None:
    pack, publication = offer_marked_pack(olivia, 3)
    mine = subscribe(charlie, publication)
    ids = [memory["id"] for memory in olivia.search("heron", namespaces=["/birds"], top_k=50)]
    publish_version(
        olivia, build_version(olivia, pack, [*ids, str(olivia.add("A heron left.", namespace="/birds")["id"])], "1.1.0")
    )
    run_jobs()
    plan: dict[str, Any] = charlie.post(f"subscriptions/{mine['id']}/upgrade/?dry_run=true", {"version": "1.1.0"}).json
    assert (plan["added"], plan["changed"], plan["removed"]) == (1, 0, 0)
