"""Packs and their versions: scanned, signed, frozen; what may not leave stays."""

import pytest

from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import MISSING, Contract, contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import TEXTS, build_version, memories_of, pack_of, publish_version
from vault.store.files import file_read
from vault.store.numbers import Number, Range, number_read

SECRET = "The password of the mill is hunter2: AKIAIOSFODNN7EXAMPLE"
MAIL = "Write to ana@example.com about the heron."


@pytest.mark.parametrize("who", ["alice", "bob", "charlie"])
def test_pack_without_permission_is_refused_and_writes_nothing(who: str, world: World, olivia: Contract) -> None:
    pack = pack_of(olivia)
    (memory,) = memories_of(olivia, TEXTS[0])
    build_version(olivia, pack, [memory])
    other = contract(world, who)
    status = 404 if who == "charlie" else 403
    for method, address, body in (
        ("GET", f"packs/{pack}/", None),
        ("PATCH", f"packs/{pack}/", {"title": "Mine"}),
        ("DELETE", f"packs/{pack}/", None),
        ("POST", f"packs/{pack}/versions/", {"version": "2.0.0", "ids": [memory]}),
        ("POST", f"packs/{pack}/preview/", {"ids": [memory]}),
        ("GET", f"packs/{pack}/versions/1.0.0/file/", None),
        ("POST", f"packs/{pack}/versions/1.0.0/yank/", {"reason": "x"}),
    ):
        assert other.send(method, address, body).status == status, (method, address)
    assert olivia.get(f"packs/{pack}/").json["title"] == "Herons"
    assert olivia.get(f"packs/{pack}/versions/").json["count"] == 1
    if who != "charlie":
        assert other.post("packs/", {"name": "mine", "title": "Mine"}).status == 403


def test_version_is_a_signed_file_of_the_chosen_memories(olivia: Contract) -> None:
    pack = pack_of(olivia, readme="About herons.", keywords=["birds"])
    version = build_version(olivia, pack, memories_of(olivia, *TEXTS), changelog="First.")
    assert (version["state"], version["count"], version["languages"]) == ("ready", 3, ["en"])
    content = olivia.get(f"packs/{pack}/versions/1.0.0/file/").body
    found = file_read(content)
    assert sorted(item.content for item in found.items) == sorted(TEXTS)
    assert (found.manifest.name, found.manifest.readme) == ("acme/herons", "About herons.")
    assert (found.manifest.digest, found.manifest.key_id) == (version["digest"], version["key_id"])
    shown = olivia.get(f"packs/{pack}/versions/1.0.0/preview/").json["results"]
    assert sorted(memory["content"] for memory in shown) == sorted(TEXTS)


def test_planted_secret_blocks_the_version_until_the_memory_is_changed(olivia: Contract) -> None:
    pack = pack_of(olivia)
    ids = memories_of(olivia, TEXTS[0], SECRET)
    version = build_version(olivia, pack, ids)
    assert (version["state"], version["count"], version["size"]) == ("blocked", 1, 0)
    assert [memory["memory_id"] for memory in version["report"]["blocked"]] == [ids[1]]
    assert olivia.post("publications/", {"pack_version": version["id"]}).status == 409
    assert olivia.get(f"packs/{pack}/versions/1.0.0/file/").status == 409
    changed = olivia.patch(f"memories/{ids[1]}/", {"content": "The mill has a password."}, if_match='"1"')
    assert changed.status == 200, changed
    assert build_version(olivia, pack, ids)["state"] == "ready"


def test_findings_are_redacted_or_dropped_as_asked(olivia: Contract) -> None:
    pack = pack_of(olivia)
    ids = memories_of(olivia, TEXTS[0], MAIL)
    redacted = build_version(olivia, pack, ids, "1.0.0", findings="redact")
    assert (redacted["count"], redacted["report"]["counts"]["redacted"]) == (2, 1)
    texts = [version["content"] for version in olivia.get(f"packs/{pack}/versions/1.0.0/preview/").json["results"]]
    assert not any("ana@example.com" in text for text in texts)
    dropped = build_version(olivia, pack, ids, "1.1.0", findings="drop")
    assert (dropped["count"], dropped["report"]["dropped"]) == (1, {"email": 1})


def test_memory_about_a_data_subject_leaves_anonymised_or_not_at_all(olivia: Contract) -> None:
    pack = pack_of(olivia)
    ids = memories_of(olivia, "Carla saw a heron. carla fed it.", subject="Carla")
    assert build_version(olivia, pack, ids)["report"]["dropped"] == {"subject": 1}
    version = build_version(olivia, pack, ids, subjects="anonymise")
    assert version["report"]["counts"]["anonymised"] == 1
    (item,) = olivia.get(f"packs/{pack}/versions/1.0.0/preview/").json["results"]
    assert item["content"] == "[person] saw a heron. [person] fed it."


def test_erased_data_subject_takes_the_versions_with_its_memories(olivia: Contract) -> None:
    pack = pack_of(olivia)
    memory = olivia.add("Carla saw a heron.", namespace="/birds", subject="Carla")
    version = build_version(olivia, pack, [memory["id"]], subjects="anonymise")
    publish_version(olivia, version)
    subject = olivia.get("subjects/").json["results"][0]["id"]
    assert olivia.post(f"subjects/{subject}/erase/").status == 202
    run_jobs()
    assert olivia.get(f"packs/{pack}/versions/1.0.0/").json["state"] == "yanked"
    assert olivia.get(f"packs/{pack}/versions/1.0.0/file/").status == 409
    assert olivia.get("publications/").json["count"] == 0


@pytest.mark.parametrize("sensitivity", ["confidential", "restricted"])
def test_sensitive_memory_does_not_leave(sensitivity: str, olivia: Contract) -> None:
    pack = pack_of(olivia)
    ids = memories_of(olivia, TEXTS[0]) + memories_of(olivia, TEXTS[1], sensitivity=sensitivity)
    assert build_version(olivia, pack, ids)["report"]["dropped"] == {"sensitivity": 1}


def test_sharing_policy_against_publishing_keeps_memories(olivia: Contract) -> None:
    document = {"where": {"namespace": "/birds"}, "share_with": ["member"], "publish": False}
    assert olivia.post("policies/", {"kind": "sharing", "name": "stay", "document": document}).status == 201
    pack = pack_of(olivia)
    version = build_version(olivia, pack, memories_of(olivia, TEXTS[0]))
    assert (version["state"], version["report"]["dropped"]) == ("blocked", {"policy": 1})


def test_preview_shows_each_memory_and_keeps_nothing(olivia: Contract) -> None:
    pack = pack_of(olivia)
    ids = memories_of(olivia, TEXTS[0], MAIL)
    shown = olivia.post(f"packs/{pack}/preview/", {"ids": ids}).json["results"]
    assert [(memory["memory_id"], memory["treatment"]) for memory in shown] == [(ids[0], "as_is"), (ids[1], "blocked")]
    assert olivia.get(f"packs/{pack}/versions/").json["count"] == 0


def test_version_that_is_ready_never_changes(olivia: Contract) -> None:
    pack = pack_of(olivia)
    ids = memories_of(olivia, *TEXTS)
    build_version(olivia, pack, ids[:1])
    again = olivia.post(f"packs/{pack}/versions/", {"version": "1.0.0", "ids": ids})
    assert (again.status, again.code) == (409, "conflict")


def test_memory_has_the_same_id_in_every_version(olivia: Contract) -> None:
    pack = pack_of(olivia)
    ids = memories_of(olivia, TEXTS[0])
    for number in ("1.0.0", "1.1.0"):
        build_version(olivia, pack, ids, number)
    first, second = (
        olivia.get(f"packs/{pack}/versions/{number}/preview/").json["results"][0]["id"] for number in ("1.0.0", "1.1.0")
    )
    assert first == second
    assert first != ids[0]


def test_choice_needs_ids_or_filters(olivia: Contract) -> None:
    pack = pack_of(olivia)
    choices: tuple[dict[str, object], ...] = ({}, {"ids": [str(MISSING)], "filters": {"tags": "a"}}, {"filters": {}})
    for body in choices:
        assert olivia.post(f"packs/{pack}/versions/", {"version": "1.0.0", **body}).status == 400
    assert olivia.post(f"packs/{pack}/versions/", {"version": "one", "ids": [str(MISSING)]}).status == 400
    version = build_version(olivia, pack, [str(MISSING)])
    assert (version["state"], version["count"]) == ("blocked", 0)


@each_case("name", ["Herons", "-herons", "herons ", "he/rons", "", "苍鹭"])
def test_name_that_is_no_short_name_is_refused(name: str, olivia: Contract) -> None:
    assert olivia.post("packs/", {"name": name, "title": "Herons"}).status == 400


def test_published_pack_is_not_removed(olivia: Contract) -> None:
    pack, unused = pack_of(olivia), pack_of(olivia, "owls")
    publish_version(olivia, build_version(olivia, pack, memories_of(olivia, TEXTS[0])))
    assert olivia.delete(f"packs/{pack}/").status == 409
    assert olivia.delete(f"packs/{unused}/").status == 204


@pytest.mark.parametrize(
    ("text", "newest"), [("*", "2.0.0"), ("^1.0.0", "1.10.0"), ("~1.2.0", "1.2.9"), ("1.2.3", "1.2.3"), ("3.0.0", None)]
)
def test_range_takes_its_newest_version(text: str, newest: str | None) -> None:
    numbers = [number_read(item) for item in ("1.0.0", "1.2.3", "1.2.9", "1.10.0", "2.0.0")]
    assert Range(text).newest(numbers) == (number_read(newest) if newest else None)
    assert Number(1, 2, 10) > Number(1, 2, 9)
