"""Hidden, banned and deleted: what leaves the catalogue and the subscribers, and who may decide."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from governance.database import acting
from governance.errors import Forbidden
from governance.models import AuditEntry
from governance.vocabulary import Verb
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import (
    TEXTS,
    build_version,
    memories_of,
    offer_pack,
    pack_of,
    publish_version,
    subscribe,
)
from vault.models import PackVersion
from vault.store.moderation import Decision, publication_moderate

PLACE = "/packs/other/herons"


@pytest.fixture
def publication(charlie: Contract) -> str:
    return offer_pack(charlie, *TEXTS)


def moderate(decision: str, pack: str = "other/herons") -> None:
    call_command("pack_moderate", pack, decision, "--reason", "Against the rules.", "--json", stdout=StringIO())
    run_jobs()


def names(client: Contract) -> list[str]:
    return [publication["name"] for publication in client.get("publications/").json["results"]]


def test_pack_that_the_operator_hides_stays_with_subscribers_only(
    olivia: Contract, charlie: Contract, publication: str
) -> None:
    subscribe(olivia, publication)
    moderate("hide")
    assert names(olivia) == names(charlie) == []
    assert olivia.get(f"publications/{publication}/").status == 404
    assert len(olivia.search("heron", namespaces=[PLACE])) == len(TEXTS)
    (own,) = charlie.get("publications/own/").json["results"]
    assert (own["state"], own["reason"]) == ("hidden", "Against the rules.")
    moderate("show")
    assert names(olivia) == ["other/herons"]


def test_banned_pack_goes_from_subscribers_and_takes_no_version(
    world: World, olivia: Contract, charlie: Contract, publication: str
) -> None:
    subscribe(olivia, publication)
    moderate("ban")
    assert names(olivia) == []
    assert olivia.search("heron", namespaces=[PLACE]) == []
    pack = charlie.get("packs/").json["results"][0]["id"]
    newer = build_version(charlie, pack, memories_of(charlie, "The heron wades."), "1.1.0")
    reply = charlie.post("publications/", {"pack_version": newer["id"], "visibility": "installation"})
    assert (reply.status, "banned" in reply.json["detail"]) == (409, True)
    assert charlie.delete(f"packs/{pack}/").status == 409
    with acting(world.charlie.actor):
        (entry,) = AuditEntry.objects.filter(verb=Verb.PUBLICATION_MODERATED)
        assert entry.detail == {"state": "banned", "reason": "Against the rules."}


@pytest.mark.usefixtures("publication")
@each_case("who", ["charlie", "olivia", "alice", "bob"])
def test_member_cannot_moderate(world: World, who: str) -> None:
    with pytest.raises(Forbidden):
        publication_moderate(actor=world.person(who).actor, name="herons", decision=Decision.SHOW, reason="x")


@pytest.mark.usefixtures("publication")
@pytest.mark.parametrize("words", [("other/owls", "hide"), ("nobody/herons", "hide"), ("other/herons", "show")])
def test_moderation_without_effect_is_refused(words: tuple[str, str]) -> None:
    with pytest.raises(CommandError):
        moderate(words[1], words[0])


def test_version_without_live_subscribers_is_deleted(olivia: Contract, charlie: Contract) -> None:
    pack, ids = pack_of(charlie), memories_of(charlie, *TEXTS)
    publish_version(charlie, build_version(charlie, pack, ids[:1]))
    publish_version(charlie, build_version(charlie, pack, ids, "1.1.0"))
    assert charlie.delete(f"packs/{pack}/versions/1.1.0/").status == 204
    assert [publication["version"] for publication in olivia.get("publications/").json["results"]] == ["1.0.0"]
    assert charlie.get(f"packs/{pack}/versions/1.1.0/").status == 404
    assert charlie.delete(f"packs/{pack}/versions/1.0.0/").status == 204
    assert names(olivia) == names(charlie) == []
    publish_version(charlie, build_version(charlie, pack, ids, "1.2.0"))
    assert names(olivia) == ["other/herons"]


def test_version_of_a_live_subscriber_is_not_deleted_before_the_contract_ends(
    olivia: Contract, charlie: Contract, publication: str
) -> None:
    made = subscribe(olivia, publication)
    version = f"packs/{charlie.get('packs/').json['results'][0]['id']}/versions/1.0.0/"
    refused = charlie.delete(version)
    assert (refused.status, "Live subscribers have this version: 1." in refused.json["detail"]) == (409, True)
    assert len(olivia.search("heron", namespaces=[PLACE])) == len(TEXTS)
    assert olivia.delete(f"subscriptions/{made['id']}/").status == 202
    run_jobs()
    assert charlie.delete(version).status == 204


@pytest.mark.usefixtures("publication")
@pytest.mark.parametrize(("who", "status"), [("olivia", 404), ("alice", 404), ("bob", 404)])
def test_version_of_another_organisation_is_not_deleted(world: World, charlie: Contract, who: str, status: int) -> None:
    version = f"packs/{charlie.get('packs/').json['results'][0]['id']}/versions/1.0.0/"
    assert contract(world, who).delete(version).status == status
    with acting(world.charlie.actor):
        assert PackVersion.objects.count() == 1


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_member_without_permission_deletes_no_version(world: World, olivia: Contract, who: str) -> None:
    pack = pack_of(olivia)
    build_version(olivia, pack, memories_of(olivia, TEXTS[0]))
    assert contract(world, who).delete(f"packs/{pack}/versions/1.0.0/").status == 403
    assert olivia.get(f"packs/{pack}/versions/1.0.0/").status == 200


def test_version_is_deleted_on_the_page_of_its_pack(world: World, olivia: Contract) -> None:
    pack = pack_of(olivia)
    build_version(olivia, pack, memories_of(olivia, TEXTS[0]))
    owner = signed_in(world.olivia)
    assert 'name="delete"' in owner.get(f"/store/own/{pack}/").content.decode()
    assert owner.post(f"/store/own/{pack}/1.0.0/withdraw/", {"delete": "yes"}).status_code == 303
    assert "No version yet" in owner.get(f"/store/own/{pack}/").content.decode()
