"""A chat through the installation's engine: cached tokens are shown and priced, and a chart tells what each turn
saved."""

from django.test import override_settings

from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.forms.test_caches import QUESTION, add_facts, ask, engine, make_cache
from tests.vault.forms.twin import TOKEN, EngineTwin
from vault.providers.registry import runs_in_engine, tenant_llm

__all__ = ["engine"]


def test_chart_shows_saved_tokens_and_time_over_a_conversation(
    engine: EngineTwin, world: World, alice: Contract
) -> None:
    first = ask(alice)
    place = f"conversations/{first['conversation']}/turns/"
    form = make_cache(alice, add_facts(alice))
    last = alice.post(place, {"content": QUESTION}).json
    page = signed_in(world.alice).get(f"/chat/{first['conversation']}/turns/{last['id']}/why/").content.decode()
    chart = " ".join(page.partition('<ol class="saved-turns">')[2].partition("</ol>")[0].split())
    assert f"0 of {first['usage']['prompt_tokens']} tokens" in chart
    assert f"{last['usage']['cached_tokens']} of {last['usage']['prompt_tokens']} tokens" in chart
    saved = form["saved_seconds"] or alice.get(f"forms/{form['id']}/").json["saved_seconds"]
    assert f"{saved:.1f} s" in chart
    assert f"{last['usage']['cached_tokens']} tokens, {saved:.1f} s" in " ".join(page.split())


def test_conversation_without_savings_shows_no_chart(engine: EngineTwin, world: World, alice: Contract) -> None:
    turn = ask(alice)
    page = signed_in(world.alice).get(f"/chat/{turn['conversation']}/turns/{turn['id']}/why/").content.decode()
    assert "Saved in this conversation" not in page


def test_tenants_endpoint_of_the_engine_uses_the_cache_and_prices_its_tokens(
    engine: EngineTwin, olivia: Contract
) -> None:
    from django.conf import settings

    address = settings.MEMOS_LLM.url
    with override_settings(ALLOW_PRIVATE_ADDRESSES=True):
        body = {"model": engine.name, "address": address, "key": TOKEN, "prompt_price": "100", "cached_price": "1"}
        assert olivia.post("models/", body).status == 201
        make_cache(olivia, add_facts(olivia))
        turn = ask(olivia)
    usage = turn["usage"]
    assert usage["cached_tokens"] > 0
    assert len(engine.asked[-1]["caches"]) == 1
    expected = (100 * (usage["prompt_tokens"] - usage["cached_tokens"]) + usage["cached_tokens"]) / 1_000_000
    assert abs(float(turn["cost"]["amount"]) - expected) < 0.000001


def test_endpoint_elsewhere_gets_no_names_of_caches(engine: EngineTwin, olivia: Contract) -> None:
    elsewhere = tenant_llm(url="https://model.example/v1", key="", model=engine.name, read_seconds=5, retries=0)
    assert not runs_in_engine(elsewhere)
