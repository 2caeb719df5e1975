"""The page of the models: who operates the tenant tests them; nobody else sees them."""

import pytest
from pytest_django import Settings

from tests.factories import World
from tests.governance.web.visitors import signed_in


def test_the_embedder_is_tested_by_a_button(world: World) -> None:
    olivia = signed_in(world.olivia)
    assert "banner-ok" not in olivia.get("/settings/models/").content.decode()
    page = olivia.post("/settings/models/", {"part": "embedder"}).content.decode()
    assert "banner-ok" in page
    assert "dimensions." in page


def test_a_model_that_is_not_set_gives_no_usable_answer(world: World) -> None:
    page = signed_in(world.olivia).post("/settings/models/", {"part": "llm"}).content.decode()
    assert "banner-bad" in page
    assert "MEMOS_LLM_URL" in page


def test_another_part_is_refused(world: World) -> None:
    assert signed_in(world.olivia).post("/settings/models/", {"part": "disk"}).status_code == 422


def test_a_test_takes_one_of_the_tenants_heavy_calls(world: World, settings: Settings) -> None:
    settings.HEAVY_CALLS = 0
    assert signed_in(world.olivia).post("/settings/models/", {"part": "embedder"}).status_code == 429


def test_a_tenant_without_tokens_left_asks_no_language_model(world: World) -> None:
    limits = {"holder": {"kind": "tenant"}, "limits": {"model_tokens_per_month": 0}}
    assert world.client("olivia").send("PUT", "quotas/", limits).status == 200
    browser = signed_in(world.olivia)
    assert browser.post("/settings/models/", {"part": "llm"}).status_code == 429
    assert browser.post("/settings/models/", {"part": "embedder"}).status_code == 200


@pytest.mark.parametrize("who", ["alice", "bob", "ada"])
def test_who_does_not_operate_the_tenant_is_refused(world: World, who: str) -> None:
    browser = signed_in(world.person(who))
    assert browser.get("/settings/models/").status_code == 403
    assert browser.post("/settings/models/", {"part": "embedder"}).status_code == 403
