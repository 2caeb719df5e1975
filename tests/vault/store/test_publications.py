"""Publications: approved by another member, found by whom they are for, withdrawn."""

import pytest

from governance.vocabulary import RoleName
from tests.factories import World, person_add
from tests.vault.api.contract import Contract, contract
from tests.vault.store.pack_factories import TEXTS, build_version, memories_of, pack_of, publish_version


@pytest.fixture
def adam(world: World) -> Contract:
    """Another admin of acme."""
    return Contract(key=person_add(world.acme, "adam@acme.example", RoleName.ADMIN).key.text)


def names(client: Contract, asked: str = "") -> list[str]:
    reply = client.get(f"publications/{asked}")
    assert reply.status == 200, reply
    return [row["name"] for row in reply.json["results"]]


def test_publication_for_others_waits_for_another_member(olivia: Contract, adam: Contract, charlie: Contract) -> None:
    version = build_version(olivia, pack_of(olivia), memories_of(olivia, TEXTS[0]))
    made = publish_version(olivia, version)
    assert (made["state"], made["waiting"], made["version"]) == ("waiting", "1.0.0", None)
    assert names(charlie) == names(olivia) == []
    assert olivia.post(f"publications/{made['id']}/approve/").status == 409
    approved = adam.post(f"publications/{made['id']}/approve/").json
    assert (approved["state"], approved["version"]) == ("published", "1.0.0")
    assert names(charlie) == ["acme/herons"]


def test_rejected_publication_is_listed_for_nobody(olivia: Contract, adam: Contract, charlie: Contract) -> None:
    made = publish_version(olivia, build_version(olivia, pack_of(olivia), memories_of(olivia, TEXTS[0])))
    rejected = adam.post(f"publications/{made['id']}/reject/", {"reason": "Too short."}).json
    assert (rejected["state"], rejected["reason"]) == ("rejected", "Too short.")
    assert names(charlie) == []
    assert adam.post(f"publications/{made['id']}/approve/").status == 409


def test_only_member_publishes_without_another(olivia: Contract, charlie: Contract) -> None:
    made = publish_version(olivia, build_version(olivia, pack_of(olivia), memories_of(olivia, TEXTS[0])))
    assert made["state"] == "published"
    assert names(charlie) == ["acme/herons"]


@pytest.mark.parametrize(
    ("approval", "visibility", "state"),
    [
        ("always", "tenant", "waiting"),
        ("always", "installation", "waiting"),
        ("outside", "tenant", "published"),
        ("outside", "installation", "waiting"),
        ("never", "tenant", "published"),
        ("never", "installation", "published"),
    ],
)
def test_publication_waits_where_policy_asks_for_a_second_approver(
    approval: str, visibility: str, state: str, olivia: Contract, adam: Contract, charlie: Contract
) -> None:
    policy_of(olivia, approval)
    policy_of(charlie, "always")  # of another tenant
    made = publish_version(
        olivia, build_version(olivia, pack_of(olivia), memories_of(olivia, TEXTS[0])), visibility=visibility
    )
    assert made["state"] == state
    if state == "waiting":
        assert olivia.post(f"publications/{made['id']}/approve/").status == 409
        assert adam.post(f"publications/{made['id']}/approve/").json["state"] == "published"


def test_publication_waits_for_an_approver_who_is_not_there_yet(world: World, olivia: Contract) -> None:
    policy_of(olivia, "always", {"namespace": "/elsewhere"})
    policy_of(olivia, "never")
    made = publish_version(olivia, build_version(olivia, pack_of(olivia), memories_of(olivia, TEXTS[0])))
    assert made["state"] == "waiting"
    eve = Contract(key=person_add(world.acme, "eve@acme.example", RoleName.OWNER).key.text)
    assert eve.post(f"publications/{made['id']}/approve/").json["state"] == "published"


def policy_of(client: Contract, approval: str, where: dict[str, str] | None = None) -> None:
    document = {"where": where or {}, "share_with": ["member"], "publish": True, "approval": approval}
    reply = client.post("policies/", {"kind": "sharing", "name": f"Approval {approval}", "document": document})
    assert reply.status == 201, reply


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ({"visibility": "tenant"}, False),
        ({"visibility": "tenants", "tenants": ["acme"]}, False),
        ({"visibility": "tenants", "tenants": ["other"]}, True),
        ({"visibility": "installation"}, True),
    ],
)
def test_publication_is_listed_for_its_visibility(
    fields: dict[str, object], seen: bool, olivia: Contract, bob: Contract, charlie: Contract
) -> None:
    made = publish_version(olivia, build_version(olivia, pack_of(olivia), memories_of(olivia, TEXTS[0])), **fields)
    assert names(bob) == ["acme/herons"]
    assert names(charlie) == (["acme/herons"] if seen else [])
    assert charlie.get(f"publications/{made['id']}/").status == (200 if seen else 404)


@pytest.mark.parametrize("who", ["alice", "bob", "charlie"])
def test_publication_without_permission_is_refused(who: str, world: World, olivia: Contract) -> None:
    version = build_version(olivia, pack_of(olivia), memories_of(olivia, TEXTS[0]))
    reply = contract(world, who).post("publications/", {"pack_version": version["id"]})
    assert reply.status == (404 if who == "charlie" else 403)
    assert olivia.get("publications/own/").json["count"] == 0


def test_page_of_a_publication_shows_texts_versions_and_samples(olivia: Contract, charlie: Contract) -> None:
    pack = pack_of(olivia, readme="About herons.", authors=["Olivia"])
    made = publish_version(
        olivia, build_version(olivia, pack, memories_of(olivia, *TEXTS)), terms={"reads": 10, "price": "free"}
    )
    shown = charlie.get(f"publications/{made['id']}/").json
    assert (shown["readme"], shown["authors"], shown["publisher"]) == ("About herons.", ["Olivia"], "Acme")
    assert [version["version"] for version in shown["versions"]] == ["1.0.0"]
    assert sorted(sample["content"] for sample in shown["samples"]) == sorted(TEXTS)
    assert (shown["terms"]["reads"], shown["terms"]["period"]) == (10, "month")


def test_catalogue_is_searched_and_filtered(olivia: Contract, charlie: Contract) -> None:
    birds = pack_of(olivia, "herons", topic="home", description="Birds at the mill", keywords=["nature"])
    food = pack_of(olivia, "soups", topic="food")
    publish_version(olivia, build_version(olivia, birds, memories_of(olivia, TEXTS[0])))
    publish_version(
        olivia, build_version(olivia, food, memories_of(olivia, "烫伤后用流动冷水冲二十分钟，不要涂牙膏。"))
    )
    assert names(charlie, "?q=mill+birds") == names(charlie, "?q=nature") == ["acme/herons"]
    assert names(charlie, "?topic=food") == names(charlie, "?language=zh") == ["acme/soups"]
    assert names(charlie, "?q=nothing") == []
    assert sorted(names(charlie, "?order=newest")) == ["acme/herons", "acme/soups"]
    for asked in ("?topic=birds", "?order=nearest", "?speling=1", "?language=english-language"):
        assert charlie.get(f"publications/{asked}").status == 400, asked


def test_newer_version_takes_the_place_of_the_older(olivia: Contract, charlie: Contract) -> None:
    pack, ids = pack_of(olivia), memories_of(olivia, *TEXTS)
    second, first = build_version(olivia, pack, ids[:2], "1.1.0"), build_version(olivia, pack, ids[:1])
    publish_version(olivia, first)
    made = publish_version(olivia, second)
    assert made["version"] == "1.1.0"
    reply = olivia.post("publications/", {"pack_version": first["id"], "visibility": "installation"})
    assert reply.status == 409
    assert charlie.get("publications/").json["results"][0]["count"] == 2


def test_yanked_version_gives_way_to_the_one_before(olivia: Contract, charlie: Contract) -> None:
    pack, ids = pack_of(olivia), memories_of(olivia, *TEXTS)
    publish_version(olivia, build_version(olivia, pack, ids[:1]))
    publish_version(olivia, build_version(olivia, pack, ids, "1.1.0"))
    assert olivia.post(f"packs/{pack}/versions/1.1.0/yank/", {"reason": "Wrong."}).json["state"] == "yanked"
    assert [publication["version"] for publication in charlie.get("publications/").json["results"]] == ["1.0.0"]
    assert olivia.post(f"packs/{pack}/versions/1.0.0/yank/", {"reason": "Wrong."}).status == 200
    assert names(charlie) == []


def test_unknown_organisation_is_named(olivia: Contract) -> None:
    version = build_version(olivia, pack_of(olivia), memories_of(olivia, TEXTS[0]))
    body = {"pack_version": version["id"], "visibility": "tenants", "tenants": ["nobody"]}
    reply = olivia.post("publications/", body)
    assert (reply.status, reply.json["errors"][0]["field"]) == (400, "tenants")
    assert olivia.post("publications/", {**body, "tenants": []}).status == 400
