"""The first page of a new organisation: ways to begin, and a checklist that tells the truth after the first steps."""

import re

from django.test import Client

from tests.factories import World
from tests.governance.web.visitors import signed_in


def lines_of(client: Client) -> list[str]:
    page = client.get("/overview/setup/").content.decode()
    return [" ".join(re.sub(r"<[^>]+>", " ", line).split()) for line in re.findall(r"<li>.*?</li>", page, re.DOTALL)]


def test_the_first_page_leads_to_the_first_memory_and_its_checklist_follows(world: World) -> None:
    owner = signed_in(world.olivia)
    page = owner.get("/overview/").content.decode()
    for way in (
        'href="/chat/"',
        'href="/integrations/"',
        'href="/exchange/"',
        'href="/store/"',
        'hx-get="/overview/setup/"',
    ):
        assert way in page
    assert "tiles" not in page
    assert lines_of(owner)[0] == "First memory None yet Add"
    world.client("olivia").post("memories/", {"content": "The heron nests by the weir.", "namespace": "/team"})
    lines = lines_of(owner)
    assert lines[0] == "First memory Stored"
    assert "Second factor Off Set up" in lines
    assert "beside you" in lines[3]
    assert "tiles" in owner.get("/overview/").content.decode()
    bob = signed_in(world.bob)
    assert "overview/setup" not in bob.get("/overview/").content.decode()
    assert bob.get("/overview/setup/").status_code == 403
    assert owner.post("/overview/setup/hide/")["Location"] == "/overview/"
    assert lines_of(owner) == []
    assert lines_of(signed_in(world.olivia)) == [], "in another browser, too"
    assert bob.post("/overview/setup/hide/").status_code == 403
