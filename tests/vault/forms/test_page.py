"""The page Forms: what is a cache or an adapter, what it saves, and why it is used or not."""

from html import unescape

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.forms.test_adapters import GOOD, add_facts, train
from tests.vault.forms.test_caches import ask, engine, make_cache, persona_of
from tests.vault.forms.twin import EngineTwin
from tests.vault.outbox import run_jobs

__all__ = ["engine"]


def test_page_tells_what_each_form_saves_and_why_it_is_used_or_not(
    engine: EngineTwin, world: World, olivia: Contract
) -> None:
    engine.report = GOOD | {"perplexity_ratio": 1.4}
    ids = add_facts(olivia)
    cache = make_cache(olivia, ids)
    train(olivia, ids)
    ask(olivia)
    page = signed_in(world.olivia).get("/forms/").content.decode()
    assert "Mounted on olivia." in page
    assert f"used 1 time, saved {cache['tokens']} tokens" in page
    assert "Not used: its examination misses the limits of perplexity (× 1.40, at most × 1.10)." in page
    assert olivia.delete(f"memories/{ids[0]}/").status == 204


def test_adapter_is_made_approved_mounted_and_erased_on_the_page(
    engine: EngineTwin, world: World, olivia: Contract
) -> None:
    engine.report = GOOD
    add_facts(olivia)
    browser = signed_in(world.olivia)
    written = {"title": "Knows our house", "namespace": "/team", "kind": "parameter"}
    dry = browser.post("/forms/", written | {"action": "dry"})
    assert "3 memories, about" in dry.content.decode()
    assert engine.trained == {}
    assert browser.post("/forms/", written | {"action": "make"}).status_code == 303
    run_jobs()
    (form,) = olivia.get("forms/").json["results"]
    place = f"/forms/{form['id']}/change/"
    page = browser.get(f"/forms/?memories={form['id']}").content.decode()
    assert "Waits for a person who approves it." in page
    assert [olivia.get(f"memories/{parent}/").json["content"] in unescape(page) for parent in form["parents"]] == [
        True
    ] * 3
    for action in ({"action": "approve"}, {"action": "mount", "persona": persona_of(olivia)}, {"action": "pin"}):
        assert browser.post(place, action).status_code == 303
    found = olivia.get(f"forms/{form['id']}/").json
    assert (found["persona"]["id"], found["pinned"]) == (persona_of(olivia), True)
    question = browser.post(place, {"action": "erase"}).content.decode()
    assert "Its training, its examination and its approval are lost." in question
    assert "Its 3 memories stay as text." in question
    assert olivia.get(f"forms/{form['id']}/").status == 200
    assert browser.post(place, {"action": "erase", "confirmed": "yes"}).status_code == 303
    assert "No caches and no adapters yet" in browser.get("/forms/").content.decode()


def test_changed_cache_is_made_anew_and_becomes_an_adapter_on_the_page(
    engine: EngineTwin, world: World, olivia: Contract
) -> None:
    engine.report = GOOD
    ids = add_facts(olivia)
    cache = make_cache(olivia, ids)
    assert olivia.patch(f"memories/{ids[0]}/", {"content": "The museum closes at seven."}, if_match='"1"').status == 200
    browser = signed_in(world.olivia)
    assert "Not used: one of its memories was changed. Make it anew." in browser.get("/forms/").content.decode()
    for action in ("anew", "train"):
        assert browser.post(f"/forms/{cache['id']}/change/", {"action": action}).status_code == 303
        run_jobs()
    adapter, anew, _old = olivia.get("forms/").json["results"]
    assert (adapter["kind"], anew["kind"], anew["stale"]) == ("parameter", "activation", False)
    assert "The museum closes at seven." in olivia.get(f"forms/{anew['id']}/text/").json["text"]
    assert '"answer": "The museum closes at seven."' in olivia.get(f"forms/{adapter['id']}/text/").json["text"]


def test_text_of_a_form_needs_the_right_to_its_memories(
    engine: EngineTwin, olivia: Contract, alice: Contract, charlie: Contract
) -> None:
    secret = olivia.add("The safe opens with 4711.")["id"]  # in her own namespace
    run_jobs()
    form = make_cache(olivia, [secret])
    assert "4711" in olivia.get(f"forms/{form['id']}/text/").json["text"]
    assert [client.get(f"forms/{form['id']}/text/").status for client in (alice, charlie)] == [404, 404]


def test_viewer_sees_no_form_to_make_and_is_refused(
    engine: EngineTwin, world: World, olivia: Contract, bob: Contract
) -> None:
    browser = signed_in(world.bob)
    assert "An editor or an admin can make a cache" in browser.get("/forms/").content.decode()
    form = make_cache(olivia, add_facts(olivia))
    page = browser.get("/forms/").content.decode()
    assert "House rules" in page
    assert 'name="namespace"' not in page
    assert browser.post("/forms/", {"title": "x", "namespace": "/team", "action": "make"}).status_code == 403
    assert browser.post(f"/forms/{form['id']}/change/", {"action": "erase"}).status_code == 403
    assert signed_in(world.charlie).post(f"/forms/{form['id']}/change/", {"action": "erase"}).status_code == 404


def test_form_of_another_member_is_erased_only_by_those_who_approve(
    engine: EngineTwin, world: World, olivia: Contract, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    ids = add_facts(olivia)
    others, own = make_cache(olivia, ids), make_cache(alice, ids)
    browser, sure = signed_in(world.alice), {"action": "erase", "confirmed": "yes"}
    page = browser.get("/forms/").content.decode()
    assert page.count('value="erase"') == 1
    assert "Who made it, or an admin, may erase it." in page
    assert browser.post(f"/forms/{others['id']}/change/", sure).status_code == 403
    for client, status in ((alice, 403), (bob, 403), (charlie, 404)):
        assert client.delete(f"forms/{others['id']}/").status == status
    for query in ("", "?purge=true"):
        assert alice.delete(f"memories/{others['memory_id']}/{query}").status == 403
    assert browser.post(f"/forms/{own['id']}/change/", sure).status_code == 303
    assert olivia.delete(f"forms/{others['id']}/").status == 204
    assert olivia.get("forms/").json["results"] == []


def test_form_waits_while_a_memory_of_it_is_in_the_bin(
    engine: EngineTwin, world: World, olivia: Contract, alice: Contract
) -> None:
    engine.report = GOOD
    ids = add_facts(olivia)
    train(olivia, ids)
    private = make_cache(olivia, [ids[0], olivia.add("The safe opens with 4711.")["id"]], title="Safe")
    assert olivia.delete(f"memories/{ids[0]}/").status == 204
    shown = {name: signed_in(getattr(world, name)).get("/forms/").content.decode() for name in ("olivia", "alice")}
    for name in ("bob", "charlie"):
        assert "Waits:" not in signed_in(getattr(world, name)).get("/forms/").content.decode()
    assert shown["olivia"].count("Waits: 1 of its memories is in the bin.") == 2
    assert "Knows our house" in shown["alice"]
    assert f"form-{private['id']}" not in shown["alice"]  # another memory of it is private to another member
    assert alice.post(f"memories/{ids[0]}/restore/").status == 200
    page = signed_in(world.olivia).get("/forms/").content.decode()
    assert "Waits:" not in page
    assert "Waits for a person who approves it." in page


def test_adapter_trained_anew_keeps_its_name_and_tells_which_limit_it_misses(
    engine: EngineTwin, world: World, olivia: Contract
) -> None:
    engine.report = GOOD
    ids = add_facts(olivia)
    train(olivia, ids)
    engine.report = GOOD | {"paraphrases": 0.6}
    assert olivia.delete(f"memories/{ids[0]}/?purge=true").status == 204
    run_jobs()
    browser = signed_in(world.olivia)
    page = browser.get("/forms/").content.decode()
    assert "Knows our house" in page
    assert "misses the limits of paraphrases (60 %, at least 80 %). Train it again, or erase it." in page
    assert "Train again with more rounds" in page
    (form,) = olivia.get("forms/").json["results"]
    assert browser.post(f"/forms/{form['id']}/change/", {"action": "anew"}).status_code == 303
    run_jobs()
    assert engine.recipes[-1] == {"steps": 120}
    assert len(olivia.get("forms/").json["results"]) == 2


def test_adapter_of_memories_about_a_person_gets_a_neutral_name_when_trained_anew(
    engine: EngineTwin, olivia: Contract
) -> None:
    engine.report = GOOD
    ids = add_facts(olivia, subject="case 17")
    train(olivia, ids)
    assert olivia.delete(f"memories/{ids[0]}/?purge=true").status == 204
    run_jobs()
    assert [form["title"] for form in olivia.get("forms/").json["results"]] == ["Trained anew"]


def test_faults_are_named_in_the_form(world: World, olivia: Contract) -> None:
    browser = signed_in(world.olivia)
    assert browser.post("/forms/", {"title": "x", "namespace": "/nowhere", "action": "dry"}).status_code == 422
    add_facts(olivia)
    without = browser.post("/forms/", {"title": "x", "namespace": "/team", "action": "dry"})
    assert without.status_code == 422
    assert "No engine of this installation" in without.content.decode()
