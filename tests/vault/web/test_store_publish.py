"""Publishing in a browser, step by step: a planted secret stops it, another member approves it, others find it."""

import re
from io import BytesIO
from unittest import mock

import pytest
from django.test import Client

from governance.vocabulary import RoleName
from tests.factories import World, person_add
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import TEXTS, build_version, memories_of, pack_of

SECRET = "The heron's keeper is mia@mill.example."
PACK = {
    "title": "Herons",
    "name": "herons",
    "description": "Birds by the mill.",
    "topic": "learning",
    "licence": "CC0-1.0",
}
VERSION = {"version": "1.0.0", "findings": "block", "subjects": "drop", "changelog": "First."}
OFFER = {"visibility": "installation", "period": "month", "reads": "100"}


@pytest.fixture
def owner(world: World) -> Client:
    return signed_in(world.olivia)


def make_pack(browser: Client, ids: list[str]) -> str:
    """The address of the new pack's second step, with these memories chosen."""
    chosen = browser.post("/store/publish/", {"choose": "yes", "id": ids})
    assert (chosen.status_code, chosen["Location"]) == (303, "/store/publish/")
    made = browser.post("/store/publish/", PACK)
    assert made.status_code == 303, made.content.decode()
    return str(made["Location"])


def text_of(browser: Client, address: str) -> str:
    answer = browser.get(address)
    assert answer.status_code == 200, answer.content.decode()
    return str(answer.content.decode())


def test_planted_secret_stops_the_version_until_it_is_redacted(
    world: World, owner: Client, charlie_browser: Client
) -> None:
    address = make_pack(owner, memories_of(contract(world, "olivia"), *TEXTS, SECRET))
    page = text_of(owner, address)
    assert "stops the version" in page
    assert "mail address" in page
    assert "mia@mill.example" not in page
    redacted = VERSION | {"findings": "redact"}
    page = owner.post(address, redacted | {"check": "yes"}).content.decode()
    assert "leaves redacted" in page
    assert "mia@mill.example" not in page
    built_at = owner.post(address, redacted)
    assert built_at.status_code == 303
    run_jobs()
    own = built_at["Location"]
    assert f"{own}1.0.0/offer/" in text_of(owner, own)
    assert "mia@mill.example" not in text_of(owner, f"{own}1.0.0/")
    assert owner.post(f"{own}1.0.0/offer/", OFFER).status_code == 303
    page = text_of(charlie_browser, "/store/acme/herons/")
    assert "100 a month" in page
    assert "1 redacted" in page


@pytest.fixture
def charlie_browser(world: World) -> Client:
    return signed_in(world.charlie)


def test_single_memory_is_left_out_of_a_selection(world: World, owner: Client) -> None:
    ids = memories_of(contract(world, "olivia"), *TEXTS, SECRET)
    address = make_pack(owner, ids)
    page = owner.post(address, VERSION | {"check": "yes", "out": ids[3]}).content.decode()
    assert "3 memories are chosen." in page
    assert "stops the version" not in page
    refused = owner.post(address, VERSION | {"check": "yes", "out": ids})
    assert refused.status_code == 422
    assert "Nothing would be left." in refused.content.decode()


def test_query_chooses_and_loses_one_memory(world: World, owner: Client) -> None:
    ids = memories_of(contract(world, "olivia"), *TEXTS)
    address = make_pack(owner, [])
    assert "Choose the memories" in text_of(owner, address)
    assert owner.get(f"{address}?namespace=/birds&tag=").status_code == 303
    assert "All memories that match are chosen." in text_of(owner, address)
    page = owner.post(address, VERSION | {"check": "yes", "out": ids[0]}).content.decode()
    assert "2 memories are chosen." in page


def test_blocked_version_names_its_memories_and_is_built_again(world: World, owner: Client) -> None:
    olivia = contract(world, "olivia")
    ids = memories_of(olivia, TEXTS[0], SECRET)
    pack = pack_of(olivia)
    assert build_version(olivia, pack, ids)["state"] == "blocked"
    page = text_of(owner, f"/store/own/{pack}/")
    assert f"/memories/{ids[1]}/" in page
    assert "Decide and build again" in page
    owner.post("/store/publish/", {"choose": "yes", "id": ids})
    assert 'value="1.0.0"' in text_of(owner, f"/store/own/{pack}/build/")


def test_another_member_approves_or_refuses_in_the_inbox(world: World, owner: Client, charlie_browser: Client) -> None:
    olivia = contract(world, "olivia")
    adam = signed_in(person_add(world.acme, "adam@acme.example", RoleName.ADMIN))
    pack = pack_of(olivia)
    build_version(olivia, pack, memories_of(olivia, TEXTS[0]))
    offer = f"/store/own/{pack}/1.0.0/offer/"
    assert owner.post(offer, OFFER).status_code == 303
    assert charlie_browser.get("/store/acme/herons/").status_code == 404
    assert "Another owner or admin decides." in text_of(owner, "/reviews/")
    inbox = text_of(adam, "/reviews/")
    decide = re.search(r'action="(/store/publications/[^"]+/decide/)"', inbox)
    assert decide is not None
    assert TEXTS[0] in text_of(adam, f"/store/own/{pack}/1.0.0/")
    assert owner.post(decide[1]).status_code == 409
    refused = adam.post(decide[1], {"reject": "yes", "reason": "x" * 301})
    assert (refused.status_code, f'value="{"x" * 301}"' in refused.content.decode()) == (422, True)
    assert re.search(r'role="alert" id="[^"]+_reason_error"', refused.content.decode())
    assert adam.post(decide[1], {"reject": "yes", "reason": "Too short."}).status_code == 303
    assert "Too short." in text_of(owner, f"/store/own/{pack}/")
    assert owner.post(offer, OFFER).status_code == 303
    assert adam.post(decide[1]).status_code == 303
    assert charlie_browser.get("/store/acme/herons/").status_code == 200
    assert "/decide/" not in text_of(adam, "/reviews/")


def test_version_is_deprecated_yanked_and_downloaded(world: World, owner: Client) -> None:
    olivia = contract(world, "olivia")
    pack = pack_of(olivia)
    build_version(olivia, pack, memories_of(olivia, TEXTS[0]))
    address = f"/store/own/{pack}/1.0.0/"
    file = owner.get(f"{address}file/")
    assert (file.status_code, file["Content-Type"]) == (200, "application/vnd.memos.mempack+zip")
    assert owner.post(f"{address}withdraw/", {"reason": ""}).status_code == 422
    assert owner.post(f"{address}withdraw/", {"reason": "Old."}).status_code == 303
    assert "Deprecated" in text_of(owner, f"/store/own/{pack}/")
    assert owner.post(f"{address}withdraw/", {"reason": "Wrong.", "yank": "yes"}).status_code == 303
    page = text_of(owner, f"/store/own/{pack}/")
    assert "Yanked" in page
    assert "Wrong." in page


def test_file_is_checked_and_a_broken_one_is_refused_on_the_page(world: World, owner: Client) -> None:
    olivia = contract(world, "olivia")
    pack = pack_of(olivia)
    build_version(olivia, pack, memories_of(olivia, TEXTS[0]))
    content = owner.get(f"/store/own/{pack}/1.0.0/file/").content
    page = owner.post("/store/check/", {"file": BytesIO(content)}).content.decode()
    assert "This installation signed it." in page
    broken = owner.post("/store/check/", {"file": BytesIO(content[:-40])})
    assert broken.status_code == 422
    assert owner.post("/store/check/", {}).status_code == 422


def test_texts_of_a_pack_change_and_its_name_does_not(world: World, owner: Client) -> None:
    pack = pack_of(contract(world, "olivia"))
    changed = PACK | {"title": "Grey herons", "name": "storks", "keywords": "birds, mill"}
    assert owner.post(f"/store/own/{pack}/", changed).status_code == 303
    found = contract(world, "olivia").get(f"packs/{pack}/").json
    assert (found["name"], found["title"], found["keywords"]) == ("herons", "Grey herons", ["birds", "mill"])


def test_pack_that_was_never_published_is_deleted(world: World, owner: Client) -> None:
    pack = pack_of(contract(world, "olivia"))
    assert owner.post(f"/store/own/{pack}/delete/").status_code == 303
    assert owner.get(f"/store/own/{pack}/").status_code == 404


@each_case(
    ("address", "form", "words"),
    [
        ("/store/publish/", PACK | {"name": "Not A Name"}, "Short name"),
        ("/store/publish/", PACK | {"name": "Herons"}, "lower-case letters"),
        ("/store/publish/", PACK | {"title": ""}, "Title"),
        ("/store/publish/", PACK | {"keywords": "x" * 101}, "Name at most 50"),
    ],
)
def test_form_that_cannot_be_used_comes_back_with_its_texts(
    owner: Client, address: str, form: dict[str, str], words: str
) -> None:
    answer = owner.post(address, form)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert "Birds by the mill." in answer.content.decode()


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("bob", 403), ("charlie", 404)])
def test_member_who_may_not_publish_is_refused(world: World, who: str, status: int) -> None:
    olivia = contract(world, "olivia")
    pack = pack_of(olivia)
    build_version(olivia, pack, memories_of(olivia, TEXTS[0]))
    browser = signed_in(world.person(who))
    for address in ("", "build/", "1.0.0/", "1.0.0/offer/", "1.0.0/file/"):
        assert browser.get(f"/store/own/{pack}/{address}").status_code == status, address
    for address in ("", "build/", "delete/", "1.0.0/offer/", "1.0.0/withdraw/"):
        assert browser.post(f"/store/own/{pack}/{address}", PACK | OFFER | {"reason": "No."}).status_code == status
    if who != "charlie":
        assert [browser.get(f"/store/{item}/").status_code for item in ("own", "publish")] == [403, 403]
        assert "/store/own/" not in text_of(browser, "/store/")
        assert "Make a pack" not in text_of(browser, "/memories/")
    assert contract(world, "olivia").get(f"packs/{pack}/").status == 200


def test_preview_marks_what_is_replaced_and_asks_about_the_rest(world: World, owner: Client) -> None:
    olivia = contract(world, "olivia")
    memory = olivia.add("Hannah Weiss met Zelda Brandt in Ulm.", namespace="/birds", subject="Hannah Weiss")
    address = make_pack(owner, [memory["id"]])
    form = VERSION | {"subjects": "anonymise"}
    page = owner.post(address, form | {"check": "yes"}).content.decode()
    assert '<span class="chip chip-small chip-soft" title="name">[person]</span> met' in page
    assert '<mark title="name">Zelda Brandt</mark>' in page
    assert 'name="accept" value="Ulm"' in page
    assert f"/memories/{memory['id']}/edit/" in page
    decided = form | {"replace": ["Zelda Brandt"], "accept": ["Ulm"], "confirm": "yes"}
    page = owner.post(address, decided | {"check": "yes"}).content.decode()
    assert "Zelda Brandt</mark>" not in page
    assert 'name="replace" value="Zelda Brandt"' in page
    own = owner.post(address, decided)["Location"]
    run_jobs()
    assert owner.post(f"{own}1.0.0/offer/", OFFER).status_code == 303
    page = text_of(owner, "/store/acme/herons/")
    assert "De-identified" in page
    assert "by people/2, and a person read what remains" in page


def test_who_sees_only_a_part_of_what_leaves_cannot_confirm_it(world: World, owner: Client) -> None:
    olivia = contract(world, "olivia")
    memory = olivia.add("Hannah Weiss sang.", namespace="/birds", subject="Hannah Weiss")
    address, form = make_pack(owner, [memory["id"]]), VERSION | {"subjects": "anonymise", "check": "yes"}
    assert 'name="confirm"' in owner.post(address, form).content.decode()
    with mock.patch("vault.web.store_publish.PREVIEWED", 1):
        page = owner.post(address, form).content.decode()
    assert 'name="confirm"' not in page
    assert "Choose fewer memories to confirm all." in page
