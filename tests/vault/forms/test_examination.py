"""The limits of an examination are a policy: of each tenant, changed by who may change policies, audited, shown."""

from typing import Any
from uuid import UUID

from governance.policies.rules import Examination, Facts, Rule, Where, examination_of
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.forms.test_adapters import GOOD, add_facts, mount, train, used_adapter
from tests.vault.forms.test_caches import ask, engine, persona_of
from tests.vault.forms.twin import EngineTwin
from tests.vault.policies.policy_factories import create_policy

__all__ = ["engine"]
POOR = GOOD | {"paraphrases": 0.6}


def test_limits_of_the_examination_are_a_policy(
    engine: EngineTwin, world: World, olivia: Contract, charlie: Contract
) -> None:
    engine.report = POOR
    form = train(olivia, add_facts(olivia))
    assert form["misses"] == ["paraphrases"]
    assert olivia.post(f"forms/{form['id']}/approve/").status == 409
    create_policy(olivia, "examination", {"where": {"namespace": "/team"}, "paraphrases": 0.5}, name="milder")
    page = signed_in(world.olivia).get("/forms/").content.decode()
    assert "paraphrases 0.5" in page
    assert "policy milder, version 1" in page
    mount(olivia, form)
    ask(olivia)
    assert used_adapter(engine)


def test_limits_of_one_tenant_are_none_of_another(engine: EngineTwin, olivia: Contract, charlie: Contract) -> None:
    engine.report = POOR
    assert (
        charlie.post("policies/", {"kind": "examination", "name": "x", "document": {"paraphrases": 0.5}}).status == 201
    )
    form = train(olivia, add_facts(olivia))
    assert olivia.post(f"forms/{form['id']}/approve/").status == 409


def test_stricter_limit_takes_an_approved_adapter_out_of_use_at_once(engine: EngineTwin, olivia: Contract) -> None:
    engine.report = GOOD
    form = train(olivia, add_facts(olivia))
    mount(olivia, form)
    ask(olivia)
    assert used_adapter(engine)
    dry = {"kind": "examination", "document": {"paraphrases": 0.95}}
    (effect,) = olivia.post("policies/simulate/", dry).json["effects"]
    assert (effect["effect"], effect["count"]) == ("adapter_refused", 1)
    create_policy(olivia, "examination", {"paraphrases": 0.95}, name="strict")
    ask(olivia)
    assert used_adapter(engine) == ""
    assert olivia.get(f"forms/{form['id']}/").json["misses"] == ["paraphrases"]
    assert olivia.patch(f"forms/{form['id']}/", {"persona": persona_of(olivia)}).status == 409


def test_viewer_changes_no_limits(bob: Contract, olivia: Contract) -> None:
    draft = {"kind": "examination", "name": "mild", "document": {"exact": 0.1}}
    assert bob.post("policies/", draft).status == 403
    assert olivia.post("policies/", draft).status == 201


def test_admin_sets_the_limits_in_the_form(world: World, olivia: Contract) -> None:
    browser = signed_in(world.olivia)
    assert "Facts that it knows, at least" in browser.get("/policies/new/examination/").content.decode()
    fields: dict[str, Any] = {"name": "ours", "enabled": "on", "perplexity": "1.2", "namespace": "/team"}
    fields |= {"exact": "0.95", "paraphrases": "0.7", "strangers": "0.75", "general": "0.8", "action": "save"}
    assert browser.post("/policies/new/examination/", fields).status_code == 303
    (policy,) = olivia.get("policies/?kind=examination").json["results"]
    assert (policy["document"]["exact"], policy["document"]["perplexity"]) == (0.95, 1.2)
    assert "facts 0.95, other wordings 0.7" in browser.get("/policies/").content.decode()


def test_strictest_limit_of_equally_specific_policies_applies() -> None:
    facts = Facts("/team/house", "parameter", "document", "internal", frozenset())
    near = Where(namespace="/team")
    rules = [
        Rule(UUID(int=1), "a", 1, Examination(where=near, exact=0.5, perplexity=1.5)),
        Rule(UUID(int=2), "b", 2, Examination(where=near, exact=0.7, perplexity=2.0)),
        Rule(UUID(int=3), "c", 1, Examination(exact=1.0)),
    ]
    found = examination_of(rules, facts)
    assert (found.limits.exact, found.limits.perplexity, found.rule) == (0.7, 1.5, "policy:a@1 policy:b@2")
    assert examination_of([], facts).limits == Examination()
