"""The page of an agent: the last calls of its key, and what each of them received."""

import pytest

from governance.apikeys.request_log import key_requests_write
from tests.factories import World, client_for
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract


def test_auditor_sees_the_exact_context_that_an_agent_received(world: World, alice: Contract) -> None:
    memory = alice.add("The heron nests by the weir.", namespace="/team")
    answer = alice.post("memories/context/", {"query": "where does the heron nest"})
    given = answer.json["text"]
    alice.patch(f"memories/{memory['id']}/", {"content": "The heron left."}, HTTP_IF_MATCH='"1"')
    owner = signed_in(world.olivia)
    key = world.alice.key.id
    page = owner.get(f"/agents/{key}/").content.decode()
    assert "received" in page
    assert f"{answer.json['tokens']} of 2000 tokens" in page.replace(",", "")
    assert "fits the question" in page
    call = page.partition(f'hx-get="/agents/{key}/calls/')[2].partition('"')[0]
    received = owner.get(f"/agents/{key}/calls/{call}").content.decode()
    assert given.replace('"', "&quot;") in received, "as it was then, word for word"
    newest = page.partition("?since=")[2].partition('"')[0]
    part = {"HX-Request": "true"}
    assert owner.get(f"/agents/{key}/?since={newest}", headers=part).status_code == 204
    alice.post("memories/search/", {"query": "weir"})
    fresh = owner.get(f"/agents/{key}/?since={newest}", headers=part)
    assert (fresh.status_code, "<html" in fresh.content.decode()) == (200, False)
    assert f"/agents/{key}/" in owner.get("/settings/keys/").content.decode()
    assert signed_in(world.bob).get(f"/agents/{key}/").status_code == 403
    assert signed_in(world.ada).get(f"/agents/{key}/calls/{call}").content.decode().count("heron") == 0, "an auditor"
    assert owner.get(f"/agents/{world.charlie.key.id}/").status_code == 404
    assert owner.get(f"/agents/{world.bob.key.id}/calls/{call}").status_code == 404
    assert alice.delete(f"memories/{memory['id']}/?purge=true").status == 204
    assert "heron" not in owner.get(f"/agents/{key}/calls/{call}").content.decode(), "what was purged shows nowhere"


@pytest.mark.usefixtures("redis_address")
def test_member_sees_the_requests_of_her_key_and_not_what_was_received(world: World, alice: Contract) -> None:
    alice.post("memories/search/", {"query": "weir"})
    client_for(world.alice.key.text).get("memories/00000000-0000-7000-8000-000000000000/")
    key_requests_write()
    page = signed_in(world.alice).get(f"/agents/{world.alice.key.id}/").content.decode()
    assert "POST /api/v1/memories/search/" in page
    assert '<span class="chip chip-bad chip-small">404</span>' in page
    assert "/calls/" not in page
    assert f"/agents/{world.alice.key.id}/" in signed_in(world.alice).get("/account/").content.decode()
    newest, part = page.partition("?since=")[2].partition('"')[0], {"HX-Request": "true"}
    address = f"/agents/{world.alice.key.id}/?since={newest}"
    assert signed_in(world.alice).get(address, headers=part).status_code == 204
    alice.post("memories/search/", {"query": "weir"})
    key_requests_write()
    assert signed_in(world.alice).get(address, headers=part).status_code == 200
    for other, status in ((world.bob, 403), (world.charlie, 404)):
        assert signed_in(other).get(f"/agents/{world.alice.key.id}/").status_code == status
