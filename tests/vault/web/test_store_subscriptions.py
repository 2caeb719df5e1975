"""A subscriber in a browser: tries a pack, subscribes, looks at reads, rewords, compares versions, uninstalls."""

import re

import pytest
from django.test import Client

from governance.database import acting
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract, contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import TEXTS, build_version, memories_of, pack_of, publish_version, subscribe
from vault.models import Mount, PackMemory, Subscription

PACK = "/store/other/herons/"
PLACE = "/packs/other/herons"
CHOICES = {"range": "*", "delivery": "pull", "accepted": "on"}


class Publisher:
    """charlie's pack of three memories, and its next versions."""

    def __init__(self, client: Contract) -> None:
        self.client, self.pack = client, pack_of(client)
        self.ids = memories_of(client, *TEXTS)
        terms = {"reads": 5, "period": "month", "price": "4 pounds", "days": 30, "purposes": []}
        self.publication = publish_version(client, build_version(client, self.pack, self.ids), terms=terms)["id"]

    def next_version(self) -> None:
        """1.1.0: one memory added, one changed, one removed."""
        (new,) = memories_of(self.client, "The heron wades in the lake.")
        reply = self.client.patch(f"memories/{self.ids[1]}/", {"content": "The heron fishes at dusk."}, if_match="*")
        assert reply.status == 200
        version = build_version(
            self.client, self.pack, [self.ids[0], self.ids[1], new], "1.1.0", changelog="Adds the lake."
        )
        terms = {"reads": 5, "period": "month"}
        publish_version(self.client, version, terms=terms)
        run_jobs()


@pytest.fixture
def publisher(charlie: Contract) -> Publisher:
    return Publisher(charlie)


@pytest.fixture
def owner(world: World) -> Client:
    return signed_in(world.olivia)


def text_of(browser: Client, address: str, status: int = 200) -> str:
    answer = browser.get(address)
    assert answer.status_code == status, answer.content.decode()
    return str(answer.content.decode())


def address_of(olivia: Contract, publisher: Publisher) -> str:
    """The page of a subscription that is installed."""
    return f"/store/subscriptions/{subscribe(olivia, publisher.publication)['id']}/"


def test_pack_is_tried_with_own_questions(olivia: Contract, owner: Client, publisher: Publisher) -> None:
    assert publisher.publication
    assert "You have asked nothing in the chat yet." in text_of(owner, f"{PACK}try/")
    olivia.add("Our heron is called Gustav.")
    page = owner.post(f"{PACK}try/", {"questions": "Where does the heron nest?\n\n"}).content.decode()
    assert "Where does the heron nest?" in page
    assert TEXTS[0] in page
    assert "The pack would add" in page
    assert owner.post(f"{PACK}try/", {"questions": "\n".join("abcdef")}).status_code == 422
    assert owner.post(f"{PACK}try/", {"questions": " "}).status_code == 422


def test_try_takes_the_last_questions_of_the_chat(olivia: Contract, owner: Client, publisher: Publisher) -> None:
    assert publisher.publication
    conversation = olivia.post("conversations/", {}).json["id"]
    olivia.post(f"conversations/{conversation}/turns/", {"content": "When does the heron fish?"})
    page = text_of(owner, f"{PACK}try/")
    assert "When does the heron fish?" in page
    assert TEXTS[1] in page


def test_terms_are_accepted_and_the_pack_is_installed_and_mounted(
    world: World, olivia: Contract, owner: Client, publisher: Publisher
) -> None:
    assert publisher.publication
    persona = olivia.post("personas/", {"name": "Ranger", "kind": "agent"}).json["id"]
    page = text_of(owner, PACK)
    for words in ("Subscribe…", "Try with my questions", "5 a month", "4 pounds", "Ranger", "I read the terms"):
        assert words in page
    refused = owner.post(f"{PACK}subscribe/", {"range": "*", "delivery": "pull"})
    assert refused.status_code == 422
    assert "Accept the terms to subscribe." in refused.content.decode()
    made = owner.post(f"{PACK}subscribe/", CHOICES | {"persona": persona})
    assert made.status_code == 303, made.content.decode()
    assert "are being installed" in text_of(owner, made["Location"])
    run_jobs()
    page = text_of(owner, made["Location"])
    for words in ("0 of 5", "Active", "Ranger", "4 pounds", "3 memories", "1.0.0"):
        assert words in page
    assert "hx-trigger" not in page.partition('id="subscription"')[2].partition(">")[0]
    assert "Open subscription" in text_of(owner, PACK)
    assert ">Installed</span>" in text_of(owner, "/store/")
    with acting(world.olivia.actor):
        assert Mount.objects.get().persona_id is not None
    again = owner.post(f"{PACK}subscribe/", CHOICES)
    assert again.status_code == 422


def test_purposes_of_the_terms_are_chosen(olivia: Contract, owner: Client, charlie: Contract) -> None:
    pack = pack_of(charlie)
    terms = {"purposes": ["research", "teaching"]}
    publish_version(charlie, build_version(charlie, pack, memories_of(charlie, *TEXTS)), terms=terms)
    assert "For these purposes" in text_of(owner, PACK)
    assert owner.post(f"{PACK}subscribe/", CHOICES | {"purposes": ["sales"]}).status_code == 422
    assert owner.post(f"{PACK}subscribe/", CHOICES | {"purposes": ["research"]}).status_code == 303
    assert olivia.get("subscriptions/").json["results"][0]["purposes"] == ["research"]


def test_reads_are_counted_and_listed_and_results_name_the_pack(
    olivia: Contract, owner: Client, publisher: Publisher
) -> None:
    address = address_of(olivia, publisher)
    found = olivia.search("heron", namespaces=[PLACE])  # the first read
    page = text_of(owner, address)
    assert "1 of 5" in page
    assert '<td class="num">1</td>' in page
    listed = text_of(owner, f"/memories/?namespace={PLACE}")  # the second
    assert listed.count('<span class="chip chip-small row-pack" title="From a pack">other/herons</span>') == len(TEXTS)
    memory = found[0]["id"]
    for part in ("", "pane/"):
        shown = text_of(owner, f"/memories/{memory}/{part}")
        assert "other/herons" in shown
        assert f"/store/installed/{memory}/" in shown
    assert "4 of 5" in text_of(owner, address)


def test_exhausted_quota_shows_a_banner(olivia: Contract, owner: Client, publisher: Publisher) -> None:
    address = address_of(olivia, publisher)
    for _number in range(5):
        assert olivia.search("heron", namespaces=[PLACE])
    assert "No reads are left in this period." in text_of(owner, address)


def test_conversation_gets_a_mount_and_its_answer_names_the_pack(
    olivia: Contract, owner: Client, publisher: Publisher
) -> None:
    address = address_of(olivia, publisher)
    conversation = olivia.post("conversations/", {}).json["id"]
    assert "No chat reads the pack yet." in text_of(owner, address)
    place = {"place": f"conversation {conversation}"}
    assert owner.post(f"{address}mount/", place).status_code == 303
    assert owner.post(f"{address}mount/", place).status_code == 422
    assert owner.post(f"{address}mount/", {"place": "task x"}).status_code == 422
    assert "No chat reads the pack yet." not in text_of(owner, address)
    olivia.post(f"conversations/{conversation}/turns/", {"content": "When does the heron fish?"})
    assert "from the pack other/herons" in text_of(owner, f"/chat/{conversation}/")


def test_upgrade_is_compared_then_confirmed_and_own_wording_stays(
    world: World, olivia: Contract, owner: Client, publisher: Publisher
) -> None:
    address = address_of(olivia, publisher)
    with acting(world.olivia.actor):
        Subscription.objects.update(quota=50)  # each comparison is a read
    found = {memory["content"]: memory["id"] for memory in olivia.search("heron", namespaces=[PLACE])}
    reword = f"/store/installed/{found[TEXTS[1]]}/"
    assert TEXTS[1] in text_of(owner, reword)
    assert owner.post(reword, {"content": ""}).status_code == 422
    assert owner.post(reword, {"content": "Ours fishes at noon."}).status_code == 303
    publisher.next_version()
    assert "Herons 1.1.0 is ready." in text_of(owner, "/store/")
    assert "Compare 1.1.0" in text_of(owner, address)
    assert "Compare 1.1.0" in text_of(owner, "/store/installed/")
    page = text_of(owner, f"{address}upgrade/")
    for words in (
        "Adds the lake.",
        "<ins>The heron wades in the lake.</ins>",
        f"<del>{TEXTS[2]}</del>",
        "Install 1.1.0",
    ):
        assert words in page
    assert re.search(r"The heron fishes at <del>dawn</del><ins>dusk</ins>", page)
    assert "Your own wording stands instead, and stays." in page
    assert "<b>1</b><span>keep your own wording</span>" in page
    only = text_of(owner, f"{address}upgrade/?kind=added")
    assert "wades" in only
    assert TEXTS[2] not in only
    assert owner.post(f"{address}upgrade/", {"version": "1.1.0"}).status_code == 303
    run_jobs()
    assert "is-now" in text_of(owner, address)
    held = sorted([TEXTS[0], "Ours fishes at noon.", "The heron wades in the lake."])
    assert olivia.search_contents("heron", namespaces=[PLACE]) == held
    assert "Back to the pack’s wording" in text_of(owner, reword)
    assert owner.post(reword, {"restore": "yes"}).status_code == 303
    run_jobs()
    assert "The heron fishes at dusk." in olivia.search_contents("heron", namespaces=[PLACE])


def test_versions_that_come_are_changed(olivia: Contract, owner: Client, publisher: Publisher) -> None:
    address = address_of(olivia, publisher)
    assert owner.post(address, {"range": "1.0.0", "delivery": "push"}).status_code == 303
    assert owner.post(address, {"range": "nonsense", "delivery": "push"}).status_code == 422
    publisher.next_version()
    page = text_of(owner, address)
    assert "outside your versions" in page
    assert "Compare 1.1.0" not in page


def test_uninstalling_counts_and_wants_the_name(
    world: World, olivia: Contract, owner: Client, publisher: Publisher
) -> None:
    address = address_of(olivia, publisher)
    assert "<b>3</b><span>memories are erased</span>" in text_of(owner, f"{address}end/")
    assert owner.post(f"{address}end/", {"name": "herons"}).status_code == 422
    assert owner.post(f"{address}end/", {"name": "other/herons"}).status_code == 303
    run_jobs()
    page = text_of(owner, address)
    assert "Ended by the subscriber" in page
    assert "No memory of the pack can be read." in page
    with acting(world.olivia.actor):
        assert not PackMemory.objects.exists()
    assert "Subscribe…" in text_of(owner, PACK)


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_reader_sees_the_subscription_and_changes_nothing(
    world: World, olivia: Contract, publisher: Publisher, who: str
) -> None:
    address = address_of(olivia, publisher)
    memory = olivia.search("heron", namespaces=[PLACE])[0]["id"]
    browser = signed_in(world.person(who))
    page = text_of(browser, address)
    assert "Uninstall" not in page
    assert "<form" not in page.partition("<main")[2].partition("</main")[0]
    assert "Subscriptions of your organisation" in text_of(browser, "/store/installed/")
    assert "An owner or an admin of your organisation can subscribe." not in text_of(browser, PACK)
    for there in (f"{address}upgrade/", f"{address}end/", f"{PACK}try/", f"/store/installed/{memory}/"):
        assert browser.get(there).status_code == 403, there
    for there, given in (
        (address, {"range": "1.0.0", "delivery": "push"}),
        (f"{address}end/", {"name": "other/herons"}),
        (f"{address}upgrade/", {"version": "1.0.0"}),
        (f"{PACK}subscribe/", CHOICES),
        (f"/store/installed/{memory}/", {"content": "Mine."}),
    ):
        assert browser.post(there, given).status_code == 403, there
    with acting(world.olivia.actor):
        row = Subscription.objects.get()
        assert (row.state, row.range, row.delivery) == ("active", "*", "pull")
        assert not PackMemory.objects.filter(is_overridden=True).exists()


def test_subscription_of_another_organisation_is_not_there(
    world: World, olivia: Contract, publisher: Publisher
) -> None:
    address = address_of(olivia, publisher)
    memory = olivia.search("heron", namespaces=[PLACE])[0]["id"]
    stranger = signed_in(world.charlie)
    for there in (address, f"{address}upgrade/", f"{address}end/", f"/store/installed/{memory}/"):
        assert stranger.get(there).status_code == 404, there
        assert stranger.post(there, {"name": "other/herons", "content": "x"}).status_code == 404, there
    assert stranger.post(f"{address}mount/", {"place": f"persona {memory}"}).status_code == 404
    assert "No pack is installed" in text_of(stranger, "/store/installed/")


def test_own_memory_is_no_pack_memory(world: World, owner: Client) -> None:
    mine = contract(world, "olivia").add("Mine.")["id"]
    assert owner.get(f"/store/installed/{mine}/").status_code == 404
