"""Tests of optional weights: heat, trust and diversity, which are off as shipped, and vectors."""

from dataclasses import replace
from uuid import UUID

import pytest
from pytest_django import Settings

from governance.database import acting
from memos_web.config import SEARCH_WEIGHTS, ConfigError, read_config
from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.models import Cube, CubeUse
from vault.retrieval.fusion import HYBRID, NO_PARTS, Ranked
from vault.retrieval.ranker import HeatAndTrust, weigh_heat_and_trust

A, B, C = (UUID(int=number) for number in range(1, 4))
FOUND = [Ranked(A, 0.8, NO_PARTS), Ranked(B, 0.7, NO_PARTS), Ranked(C, 0.6, NO_PARTS)]


def test_default_weights_of_heat_and_trust_are_zero() -> None:
    assert {name for name in SEARCH_WEIGHTS if getattr(HYBRID, name)} == {"dense"}
    assert read_config({}).search_weights == {}


def test_operator_setting_changes_only_the_named_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(SEARCH_WEIGHTS) == {"dense", "heat", "trust", "fingerprint"}
    assert read_config({"MEMOS_SEARCH_WEIGHTS": "heat=0.2, trust=1"}).search_weights == {"heat": 0.2, "trust": 1.0}
    for wrong in ("lexical=0.5", "heat", "heat=2", "heat=-1", "heat=nan", "heat=0.2,trust=0.1,heat=0.3"):
        with pytest.raises(ConfigError, match="MEMOS_SEARCH_WEIGHTS"):
            read_config({"MEMOS_SEARCH_WEIGHTS": wrong})


def test_heat_and_trust_lift_a_memory() -> None:
    stands = {A: HeatAndTrust(0.0, 0.1), B: HeatAndTrust(9.0, 0.1), C: HeatAndTrust(0.0, 0.9)}
    hot = weigh_heat_and_trust(FOUND, stands, replace(HYBRID, heat=0.5), limit=2)
    assert [(row.cube_id, row.parts.heat) for row in hot] == [(B, 0.9), (A, 0.0)]
    assert hot[0].score == pytest.approx((0.7 + 0.5 * 0.9) / 1.5)
    trusted = weigh_heat_and_trust(FOUND, stands, replace(HYBRID, trust=1.0), limit=3)
    assert [row.cube_id for row in trusted] == [C, A, B]


def test_search_weighs_heat_and_trust_when_configured(world: World, alice: Contract, settings: Settings) -> None:
    ids = [alice.add(f"The kettle number {number} whistles.")["id"] for number in range(3)]
    run_jobs()
    before = [hit["id"] for hit in alice.search("kettle whistles")]
    coldest = before[-1]
    with acting(world.alice.actor):
        CubeUse.objects.update_or_create(tenant_id=world.acme.id, cube_id=UUID(coldest), defaults={"heat": 50.0})
        Cube.objects.filter(id=UUID(before[0])).update(trust=1.0)
    assert [hit["id"] for hit in alice.search("kettle whistles")] == before
    settings.MEMOS_SEARCH_WEIGHTS = {"heat": 1.0}
    found = alice.search("kettle whistles", explain=True)
    assert found[0]["id"] == coldest
    assert found[0]["score_parts"]["heat"] == pytest.approx(50 / 51, abs=1e-6)
    settings.MEMOS_SEARCH_WEIGHTS = {"trust": 1.0}
    assert alice.search("kettle whistles", explain=True)[0]["score_parts"]["trust"] == 1.0
    assert len(alice.search("kettle whistles")) == len(ids)


def test_operator_setting_changes_the_weight_of_vectors(alice: Contract, settings: Settings) -> None:
    """Words tell the two alike; of the one that is newer, the vector is farther."""
    near = alice.add("kettle")["id"]
    far = alice.add("kettle steam")["id"]
    run_jobs()
    shipped = {hit["id"]: hit for hit in alice.search("kettle", explain=True)}
    assert shipped[near]["score_parts"]["dense"] > shipped[far]["score_parts"]["dense"]
    settings.MEMOS_SEARCH_WEIGHTS = {"dense": 1.0}
    heavier = {hit["id"]: hit for hit in alice.search("kettle", explain=True)}
    for memory in (near, far):
        parts = heavier[memory]["score_parts"]
        assert parts == shipped[memory]["score_parts"]
        assert heavier[memory]["score"] == pytest.approx((parts["lexical"] + parts["dense"]) / 2, abs=1e-5)
        assert shipped[memory]["score"] == pytest.approx((parts["lexical"] + 0.3 * parts["dense"]) / 1.3, abs=1e-5)
