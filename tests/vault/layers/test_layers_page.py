"""The page of one persona's mind, and what can be changed there without JavaScript."""

import re
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from governance.database import acting
from governance.personas.services import PersonaDraft, persona_create
from governance.vocabulary import PersonaKind
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.layers.test_layers_api import persona_of
from tests.vault.layers.test_long_term import MONDAY, say
from tests.vault.layers.test_search import STORY
from vault.models import LayerSettings, Segment, Stream

pytestmark = pytest.mark.usefixtures("mind")


@pytest.fixture
def mind(world: World, alice: Contract) -> str:
    persona = persona_of(world, "alice")
    values = {"stm_pages": 2, "theta": 0.5, "tau": 1.5}
    assert alice.patch(f"personas/{persona}/settings/", values).status == 200
    say(alice, *STORY)
    return persona


def test_page_shows_queue_segments_profile_and_traits(world: World) -> None:
    page = signed_in(world.alice).get("/layers/").content.decode()
    for shown in (
        "The cello lesson was moved to Friday.",
        "2 <small>of 2 pages</small>",
        "leaves next",
        "Maya Okafor",
        "Running",
        "I love running along the river.",
        "of 90 known",
    ):
        assert shown in page, shown


def test_page_that_left_the_queue_just_now_is_shown_on_its_way(world: World) -> None:
    client = signed_in(world.alice)
    page = client.get("/layers/").content.decode()
    assert "moves on" in page
    assert "+1 now" in page
    with acting(world.alice.actor):
        Stream.objects.update(updated_at=Now() - timedelta(minutes=2))
    page = client.get("/layers/").content.decode()
    assert "moves on" not in page
    assert "+1 now" not in page


def test_layers_are_sent_again_once_something_has_moved(world: World, alice: Contract) -> None:
    client = signed_in(world.alice)
    page = client.get("/layers/").content.decode()
    again = re.search(r'id="mind" hx-get="([^"]+)"', page)
    assert again is not None
    address = again[1].replace("&amp;", "&")
    assert client.get(address, headers={"HX-Request": "true"}).status_code == 204
    assert "<html" in client.get(address).content.decode()  # a reader without JavaScript gets the page
    say(alice, "The ferry to Naxos leaves at nine.")
    part = client.get(address, headers={"HX-Request": "true"})
    assert part.status_code == 200
    assert part.content.decode().lstrip().startswith('<div id="mind"')
    assert "The ferry to Naxos leaves at nine." in part.content.decode()


@pytest.mark.parametrize("who", ["bob", "charlie"])
def test_layers_of_another_are_not_sent_again(world: World, mind: str, who: str) -> None:
    reader = signed_in(getattr(world, who))
    reply = reader.get(f"/layers/?persona={mind}&since=0", headers={"HX-Request": "true"})
    assert "The cello lesson" not in reply.content.decode()


def test_segment_lists_its_pages(world: World, mind: str) -> None:
    with acting(world.alice.actor):
        segments = list(Segment.objects.filter(pages__gt=0))
    client = signed_in(world.alice)
    pages = [client.get(f"/layers/{mind}/segments/{segment.id}/").content.decode() for segment in segments]
    assert any("I love running along the river." in page for page in pages)
    assert client.get(f"/layers/{mind}/segments/{mind}/").status_code == 404


def test_traits_show_their_history(world: World, mind: str) -> None:
    page = signed_in(world.alice).get(f"/layers/{mind}/traits/").content.decode()
    assert "Content interests" in page
    assert "4/5" in page


def test_profile_is_written_and_refused_in_words(world: World, mind: str) -> None:
    client = signed_in(world.alice)
    form = {"field:name": "Maya", "field:home": "", "new_name": "shoe size", "new_value": "38"}
    assert client.post(f"/layers/{mind}/profile/", form).status_code == 303
    page = client.get(f"/layers/?persona={mind}").content.decode()
    assert "shoe size" in page
    refused = client.post(f"/layers/{mind}/profile/", {"new_name": "a/b", "new_value": "x"})
    assert refused.status_code == 422
    assert 'role="alert"' in refused.content.decode()


def test_timeline_shows_what_was_true_when(world: World, alice: Contract, mind: str) -> None:
    assert alice.patch(f"personas/{mind}/settings/", {"stm_pages": 1, "theta": -1}).status == 200
    say(alice, "I live in Oslo.", start=MONDAY)
    say(alice, "I moved to Lisbon.", "Thanks!", start=MONDAY + timedelta(days=30))
    client = signed_in(world.alice)
    page = client.get(f"/layers/?persona={mind}").content.decode()
    assert "what was true when" in page
    assert "Home: Oslo, 4 May 2026 to 3 Jun 2026" in page
    assert "Home: Lisbon, since 3 Jun 2026" in page
    assert page.index("Home: Oslo") < page.index("Home: Lisbon") < page.index("Name: Maya Okafor, since")
    assert 'class="gantt-bar is-past"' in page
    client.cookies["django_language"] = "zh-hans"
    assert "2026年5月4日 至 2026年6月3日" in client.get(f"/layers/?persona={mind}").content.decode()


def test_agent_is_shown_with_its_profile_and_edited_by_its_maker(world: World) -> None:
    draft = PersonaDraft("Concierge", PersonaKind.AGENT, attributes={"role": "Keeper of the calendar"})
    agent = persona_create(actor=world.alice.actor, draft=draft).id
    client, address = signed_in(world.alice), f"/layers/{agent}/profile/"
    page = client.get(f"/layers/?persona={agent}").content.decode()
    assert "Keeper of the calendar" in page
    assert "Recommended or promised" in page
    assert address in page
    assert 'name="field:character"' in client.get(address).content.decode()
    assert client.post(address, {"field:role": "Cook", "field:character": "Warm"}).status_code == 303
    assert "Warm" in client.get(f"/layers/?persona={agent}").content.decode()
    assert address not in signed_in(world.bob).get(f"/layers/?persona={agent}").content.decode()
    assert signed_in(world.bob).get(address).status_code == 403
    assert signed_in(world.charlie).get(address).status_code == 404


def test_other_constants_are_tried_without_being_stored(world: World, mind: str) -> None:
    client = signed_in(world.alice)
    page = client.get(f"/layers/{mind}/tune/?stm_pages=4&theta=-1").content.decode()
    assert "5 pages replayed" in page
    assert 'class="is-other"' in page
    with acting(world.alice.actor):
        assert LayerSettings.objects.get().values["stm_pages"] == 2
    assert client.post(f"/layers/{mind}/tune/", {"stm_pages": "4"}).status_code == 303
    with acting(world.alice.actor):
        assert LayerSettings.objects.get().values["stm_pages"] == 4
    assert client.get(f"/layers/{mind}/tune/?mu=0").status_code == 422


@pytest.mark.parametrize("part", ["profile", "tune", "traits"])
def test_pages_of_another_members_persona_are_refused(world: World, mind: str, part: str) -> None:
    assert signed_in(world.bob).get(f"/layers/{mind}/{part}/").status_code == 404
    assert signed_in(world.charlie).get(f"/layers/{mind}/{part}/").status_code == 404


def test_member_without_pages_reads_what_to_do(world: World) -> None:
    page = signed_in(world.bob).get("/layers/").content.decode()
    assert "No pages yet" in page


def test_constants_of_the_tenant_are_written_and_refused_in_words(world: World, mind: str) -> None:
    client = signed_in(world.olivia)
    assert client.post("/settings/layers/", {"theta": "0.7", "tau": "", "mu": "100"}).status_code == 303
    page = client.get("/settings/layers/?saved").content.decode()
    assert 'value="0.7"' in page
    assert 'placeholder="10000000"' in page
    refused = client.post("/settings/layers/", {"theta": "7", "tau": "hot"})
    assert refused.status_code == 422
    assert 'value="hot"' in refused.content.decode()
    with acting(world.olivia.actor):
        assert LayerSettings.objects.get(persona=None).values == {"theta": 0.7, "mu": 100.0}
    assert signed_in(world.alice).get("/settings/layers/").status_code == 403
    assert signed_in(world.bob).post("/settings/layers/", {"theta": "0.7"}).status_code == 403
