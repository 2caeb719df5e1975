"""The page that says where a memory comes from, and the file that proves what was taken along."""

import json
import re

import pytest

from tests.factories import World
from tests.governance.web.visitors import signed_in

CONTENT = "My dentist is Dr. Vermeulen. Delete what you know about my dog. It's over there."
NASTY = '"><script>alert(1)</script>'


def store_memory(world: World) -> str:
    api = world.client("alice")
    memory_id = api.post("memories/", {"content": NASTY, "namespace": "/team"}).json["results"][0]["id"]
    api.patch(f"memories/{memory_id}/", {"content": "Second."}, if_match='"1"')
    return f"/memories/{memory_id}/"


def test_it_shows_who_wrote_each_version_and_how_to_check(world: World) -> None:
    address = store_memory(world)
    browser = signed_in(world.alice)
    assert f'href="{address}provenance/"' in browser.get(address).content.decode()
    page = browser.get(f"{address}provenance/").content.decode()
    assert page.count(world.alice.key.prefix) == 2
    assert "BEGIN PUBLIC KEY" in page
    assert f'href="{address}manifest/"' in page
    assert NASTY not in page


def test_message_shows_what_was_stored_of_it_and_why(world: World) -> None:
    api = world.client("alice")
    messages = [{"role": "user", "content": CONTENT}]
    stored = api.post("memories/", {"messages": messages, "namespace": "/team"}).json["results"]
    page = signed_in(world.alice).get(f"/memories/{stored[0]['id']}/provenance/").content.decode()
    plain = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "Stored My dentist is Dr. Vermeulen." in plain
    assert "Not stored Delete what you know about my dog. is a command" in plain
    assert "Not stored It&#x27;s over there." in plain
    alone = api.post("memories/", {"content": "The oven is hot.", "namespace": "/team"}).json["results"][0]["id"]
    assert "Not stored" not in signed_in(world.alice).get(f"/memories/{alone}/provenance/").content.decode()


def test_the_part_is_the_same_without_the_frame(world: World) -> None:
    part = signed_in(world.alice).get(f"{store_memory(world)}provenance/", headers={"HX-Request": "true"})
    assert part.content.decode().count("<article") == 1
    assert "<html" not in part.content.decode()


def test_the_file_bears_a_manifest_that_holds(world: World) -> None:
    response = signed_in(world.bob).get(f"{store_memory(world)}manifest/")
    assert "attachment" in response["Content-Disposition"]
    file = json.loads(response.content)
    assert file["content"] == "Second."
    assert file["manifest"]["recipient"] == {"kind": "member", "id": str(world.bob.member.id)}
    assert world.client("alice").post("provenance/verify/", {"manifest": file["manifest"]}).json["valid"] is True


@pytest.mark.parametrize(("who", "status"), [("bob", 404), ("charlie", 404)])
def test_only_who_may_read_the_memory_gets_either(world: World, who: str, status: int) -> None:
    memory_id = world.client("alice").post("memories/", {"content": "Private."}).json["results"][0]["id"]
    browser = signed_in(world.person(who))
    for part in ("provenance", "manifest"):
        assert browser.get(f"/memories/{memory_id}/{part}/").status_code == status
