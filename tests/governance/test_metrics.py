"""Tests of `/metrics`: only with its token; counts requests and tells the state of jobs, and names nobody."""

import json
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.db import OperationalError, connection
from django.test import Client, override_settings
from psycopg_pool import ConnectionPool, PoolTimeout

from memos_web import metrics
from memos_web.config import ConfigError, read_config
from memos_web.embedded.folders import folder_empty
from tests.factories import World
from tests.harness.cases import each_case

TOKEN = "a token of sixteen and more".replace(" ", "-")
ROOT = Path(settings.BASE_DIR)
DATABASE_PLACE = ("dbname", "user", "host", "port")


def scrape() -> str:
    with override_settings(METRICS_TOKEN=TOKEN):
        reply = Client(headers={"authorization": f"Bearer {TOKEN}"}).get("/metrics")
    assert reply.status_code == 200
    return reply.content.decode()


def value(text: str, line: str) -> float:
    found = re.search(rf"^{re.escape(line)} (\S+)$", text, re.MULTILINE)
    return float(found.group(1)) if found else 0.0


def test_metrics_without_a_configured_token_are_not_there(world: World) -> None:
    assert Client(headers={"authorization": "Bearer "}).get("/metrics").status_code == 404


@each_case("sent", ["", "Bearer", "Bearer wrong", f"Token {TOKEN}", f"Bearer {TOKEN}x"])
def test_metrics_with_another_token_are_refused(world: World, sent: str) -> None:
    with override_settings(METRICS_TOKEN=TOKEN):
        assert Client(headers={"authorization": sent}).get("/metrics").status_code == 401
        assert Client(headers={"authorization": f"Bearer {world.olivia.key.text}"}).get("/metrics").status_code == 401


def test_requests_are_counted_by_pattern_and_status_without_names(world: World) -> None:
    search = 'memos_requests_total{method="POST",route="api/v1/memories/search/",status="200"}'
    before = value(scrape(), search)
    alice = world.client("alice")
    memory_id = alice.post("memories/", {"content": "The nightingale sings."}).json["results"][0]["id"]
    assert alice.post("memories/search/", {"query": "nightingale"}).status == 200
    assert alice.get(f"memories/{memory_id}/").status == 200
    Client().get("/no-such-page/nightingale/")
    text = scrape()
    assert value(text, search) == before + 1
    assert 'route="api/v1/memories/<uuid:memory_id>/"' in text
    assert value(text, 'memos_request_seconds_count{route="api/v1/memories/search/"}') >= 1
    for name in ("nightingale", memory_id, "acme", "alice"):
        assert name not in text


def test_state_of_jobs_and_audit_log_is_reported(world: World) -> None:
    world.client("alice").post("memories/", {"content": "It waits for its job."})
    text = scrape()
    assert value(text, "memos_database_up") == 1
    assert value(text, 'memos_outbox_due{queue="interactive"}') >= 1
    assert value(text, 'memos_outbox_due{queue="heavy"}') == 0
    assert value(text, 'memos_outbox_waiting_seconds{queue="interactive"}') > 0
    assert value(text, "memos_dead_letters") == 0
    assert value(text, "memos_audit_seal_lag_seconds") > 0
    assert 'memos_part_up{part="dispatcher"}' in text


def test_wait_for_a_connection_is_counted(world: World) -> None:
    names = ("memos_pool_waits_total", "memos_pool_timeouts_total")
    before = [value(scrape(), name) for name in names]
    place = {name: given for name, given in connection.get_connection_params().items() if name in DATABASE_PLACE}
    with ConnectionPool(kwargs=place, min_size=1, max_size=1, open=True) as pool:
        pool.wait()
        pool.pop_stats()
        with pool.connection(), pytest.raises(PoolTimeout):
            pool.getconn(timeout=0.01)
        metrics.pool_count(pool.pop_stats())
    text = scrape()
    assert [value(text, name) for name in names] == [before[0] + 1, before[1] + 1]
    assert value(text, "memos_pool_wait_seconds_total") > 0


def test_database_is_down_and_metrics_say_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_query() -> None:
        raise OperationalError

    monkeypatch.setattr(metrics, "outbox_health", fail_query)
    text = scrape()
    assert value(text, "memos_database_up") == 0
    assert "memos_outbox_due" not in text


def test_alerts_and_dashboard_use_metrics_that_exist(world: World) -> None:
    text = scrape()
    sources = (ROOT / "deploy/alerts.yml").read_text() + (ROOT / "deploy/grafana/memos.json").read_text()
    named = set(re.findall(r"memos_[a-z_]+", sources))
    assert len(named) >= 8
    for name in named:
        assert name.removesuffix("_bucket").removesuffix("_total") in text, name
    panels = json.loads((ROOT / "deploy/grafana/memos.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.parametrize("token", ["short", "with spaces in its middle", "non-ascii-charäcters"])
def test_unfit_token_is_refused_at_start(token: str) -> None:
    with pytest.raises(ConfigError, match="MEMOS_METRICS_TOKEN"):
        read_config({"MEMOS_METRICS_TOKEN": token})


def test_counts_of_an_earlier_start_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    folder_empty(folder)
    (folder / "counter_1.db").write_bytes(b"x")
    folder_empty(folder)
    assert list(folder.iterdir()) == []
