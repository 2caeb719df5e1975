"""The page of jobs: whose they are, cancelled, retried, given up; schedules made, changed, run and removed."""

import dataclasses
import re
from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest
from django.test import Client

from governance.heartbeats import Part
from governance.jobs.kinds import kind_of, schedulable_kinds
from governance.jobs.selectors import JobView
from governance.outbox.routes import MAX_ATTEMPTS
from governance.vocabulary import JobStatus, Topic
from governance.web.job_words import KINDS, PARTS, cron_words, meaning_words, progress_words
from governance.web.schedule_forms import ScheduleForm, cron_of, rhythm_of
from governance.web.setting_forms import SettingsForm
from governance.web.setting_words import LABELS
from tests.factories import World
from tests.governance.web.visitors import signed_in, statements
from tests.harness.cases import each_case
from tests.vault.outbox import run_jobs

Superuser = Callable[[], psycopg.Connection]
NIGHTLY = {
    "rhythm": "week",
    "minutes": "5",
    "at": "03:30",
    "weekday": "1",
    "day": "",
    "cron": "",
    "timezone": "Europe/Berlin",
    "settings-format": "csv",
    "settings-filters": "",
    "enabled": "on",
}

SWEEP = {"settings-forgetting": "lru", "settings-limit": "", "settings-youngest_days": "5", "settings-purge": "on"}


def promise(world: World, who: str, **body: object) -> str:
    """A job of this person, as it waits; its id."""
    reply = world.client(who).post("memories/?async=true", {"content": "Later."} | body)
    return str(reply.json["job"]["id"])


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response.content
    return response.content.decode()


def schedule_address(client: Client) -> str:
    found = re.search(r'href="(/jobs/schedules/[0-9a-f-]{36}/)"', text_of(client, "/jobs/"))
    assert found is not None
    return found[1]


def test_each_sees_their_own_jobs_and_who_governs_sees_all(world: World) -> None:
    job = promise(world, "alice")
    assert job in text_of(signed_in(world.alice), "/jobs/")
    assert job in text_of(signed_in(world.olivia), "/jobs/")
    for who, status in (("bob", 403), ("charlie", 404)):
        client = signed_in(world.person(who))
        assert job not in text_of(client, "/jobs/")
        assert client.get(f"/jobs/{job}/").status_code == status
        assert client.post(f"/jobs/{job}/cancel/").status_code == status


def test_a_job_that_ended_tells_what_it_did(world: World) -> None:
    job = promise(world, "alice")
    client = signed_in(world.alice)
    assert 'hx-trigger="every 3s"' in text_of(client, "/jobs/")
    run_jobs()
    page = text_of(client, "/jobs/")
    assert "1 memory" in page
    assert "hx-trigger" not in page.partition('id="runs"')[2].partition("</section>")[0]
    assert "state-activated" in text_of(client, f"/jobs/{job}/")
    part = client.get("/jobs/?list=all", headers={"HX-Request": "true"}).content.decode()
    assert part.count("<section") == 1
    assert "<html" not in part


def test_a_waiting_job_is_cancelled_and_comes_back_to_the_list(world: World) -> None:
    job = promise(world, "alice")
    client = signed_in(world.alice)
    response = client.post(f"/jobs/{job}/cancel/", {"next": "/jobs/?list=all"})
    assert (response.status_code, response["Location"]) == (303, "/jobs/?list=all")
    assert "Cancelled" in text_of(client, f"/jobs/{job}/")
    assert client.post(f"/jobs/{job}/cancel/", {"next": "https://elsewhere.example/"}).status_code == 409


def test_a_failed_job_says_why_and_is_retried(world: World, superuser: Superuser) -> None:
    world.client("olivia").post("memories/", {"content": "Here I live."})
    job = promise(world, "alice", namespace="/users/olivia")
    run_jobs()
    client = signed_in(world.alice)
    assert "You may not do this." in text_of(client, "/jobs/?state=failed")
    superuser().execute("UPDATE vault_namespace SET owner_id = NULL, kind = 'shared' WHERE path = '/users/olivia'")
    assert client.post(f"/jobs/{job}/retry/").status_code == 303
    run_jobs()
    assert "state-activated" in text_of(client, f"/jobs/{job}/")


def test_a_dead_letter_waits_for_a_person_who_gives_it_up(world: World, superuser: Superuser) -> None:
    job = promise(world, "alice")
    superuser().execute(
        "UPDATE governance_outboxevent SET attempts = %s, parked_at = now() WHERE id = %s", [MAX_ATTEMPTS, job]
    )
    superuser().execute(
        "UPDATE governance_job SET status = 'failed', dead_letter = true, finished_at = now(),"
        """ error = '{"code": "unavailable", "detail": "It was tried many times."}' WHERE id = %s""",
        [job],
    )
    client = signed_in(world.alice)
    assert "A service did not answer in any attempt." in text_of(client, "/jobs/?list=dead")
    assert client.post(f"/jobs/{job}/cancel/").status_code == 303
    assert job not in text_of(client, "/jobs/?list=dead")


def test_a_schedule_is_made_changed_switched_run_and_removed(world: World) -> None:
    client = signed_in(world.olivia)
    assert "audit.export" in text_of(client, "/jobs/schedules/new/")
    assert client.post("/jobs/schedules/new/?kind=audit.export", NIGHTLY).status_code == 303
    assert "Mondays at 03:30" in text_of(client, "/jobs/")
    address = schedule_address(client)
    page = text_of(client, f"{address}?preview")
    assert 'value="03:30"' in page
    assert re.search(r"A run now would export [1-9]\d* entr(y|ies)\. Nothing was changed\.", page)
    assert client.post(address, NIGHTLY | {"rhythm": "hour", "at": "00:05"}).status_code == 303
    assert "Every hour, 5 min past" in text_of(client, "/jobs/")
    assert client.post(f"{address}switch/", {"enabled": "no"}).status_code == 303
    assert 'aria-checked="false"' in text_of(client, "/jobs/")
    started = client.post(f"{address}run/")
    assert started["Location"].startswith("/jobs/")
    assert client.post(f"{address}remove/").status_code == 303
    assert "Nothing is scheduled" in text_of(client, "/jobs/")
    assert "Export the audit log" in text_of(client, started["Location"])


@each_case(
    ("change", "told"),
    [
        ({"timezone": "Mars/Base"}, "Write the name of a time zone"),
        ({"rhythm": "cron", "cron": "daily"}, "Write five fields"),
        ({"rhythm": "day", "at": ""}, "Say at what time."),
        ({"rhythm": "month"}, "Say on which day."),
        ({"settings-format": "pdf"}, "Select a valid choice."),
        ({"settings-filters": "memory.deleted"}, "Write name=value in each line."),
    ],
)
def test_a_form_that_cannot_be_used_keeps_what_was_typed(world: World, change: dict[str, str], told: str) -> None:
    client = signed_in(world.olivia)
    response = client.post("/jobs/schedules/new/?kind=audit.export", NIGHTLY | {"timezone": "Asia/Tokyo"} | change)
    assert response.status_code == 422
    assert told in response.content.decode()
    assert (change | {"timezone": change.get("timezone", "Asia/Tokyo")})["timezone"] in response.content.decode()
    assert "Nothing is scheduled" in text_of(client, "/jobs/")


def test_settings_of_a_job_are_fields_with_bounds_and_keep_what_was_typed(world: World) -> None:
    client, address = signed_in(world.olivia), "/jobs/schedules/new/?kind=lifecycle.sweep"
    empty = text_of(client, address)
    assert re.search(r'<input type="number" name="settings-limit" min="0" max="1000"[^>]*>', empty)
    assert re.search(r'name="settings-youngest_days" value="30" min="0" max="3650"', empty)
    assert "Empty: the limit of the forgetting policy." in empty
    for name, value, told in (
        ("settings-limit", "1001", "less than or equal to 1000"),
        ("settings-youngest_days", "", "This field is required."),
        ("settings-forgetting", "never", "Select a valid choice."),
    ):
        refused = client.post(address, NIGHTLY | SWEEP | {name: value})
        page = refused.content.decode()
        assert (refused.status_code, told in page) == (422, True)
        assert f'id="id_{name}_error"' in page
        assert value in page
    assert "Nothing is scheduled" in text_of(client, "/jobs/")
    assert client.post(address, NIGHTLY | SWEEP).status_code == 303
    (made,) = world.client("olivia").get("schedules/").json["results"]
    assert made["settings"] == {
        "forgetting": "lru",
        "limit": None,
        "youngest_days": 5,
        "archive": False,
        "purge": True,
    }
    page = text_of(client, schedule_address(client))
    assert '<option value="lru" selected>Least recently used</option>' in page
    assert 'name="settings-youngest_days" value="5"' in page
    assert re.search(r'name="settings-purge"[^>]* checked', page)
    assert not re.search(r'name="settings-archive"[^>]* checked', page)


def test_filters_of_an_export_are_lines_and_a_wrong_one_is_refused(world: World) -> None:
    client, address = signed_in(world.olivia), "/jobs/schedules/new/?kind=audit.export"
    for typed in ("colour=red", "verb=sung"):
        refused = client.post(address, NIGHTLY | {"settings-filters": typed})
        page = refused.content.decode()
        assert (refused.status_code, typed in page, 'id="id_settings-filters_error"' in page) == (422, True, True)
    lines = "verb = memory.deleted\r\noutcome=denied\r\n"
    assert client.post(address, NIGHTLY | {"settings-filters": lines}).status_code == 303
    (made,) = world.client("olivia").get("schedules/").json["results"]
    assert made["settings"]["filters"] == {"verb": "memory.deleted", "outcome": "denied"}
    assert "verb=memory.deleted\noutcome=denied" in text_of(client, schedule_address(client))


def test_each_setting_of_each_kind_has_words() -> None:
    for kind in schedulable_kinds():
        settings = kind_of(kind).settings
        assert settings is not None
        assert list(SettingsForm(kind=kind).fields) == [field.name for field in dataclasses.fields(settings)]
        assert {*SettingsForm(kind=kind).fields} <= {*LABELS}


@pytest.mark.parametrize(
    ("done", "total", "status", "words"),
    [
        (42, 120, JobStatus.RUNNING, "training: 42 of 60"),
        (60, 120, JobStatus.RUNNING, "examining"),
        (1, 1, JobStatus.SUCCEEDED, "1 of 1"),
    ],
)
def test_ended_training_is_shown_as_being_examined(done: int, total: int, status: JobStatus, words: str) -> None:
    job = JobView(uuid4(), Topic.FORM_BUILD, status, done / total, done, total, 1, False, None, None, None, *[None] * 3)
    assert progress_words(job) == words


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("bob", 403), ("charlie", 404)])
def test_schedules_are_for_those_who_operate_the_tenant(world: World, who: str, status: int) -> None:
    olivia = signed_in(world.olivia)
    olivia.post("/jobs/schedules/new/?kind=audit.export", NIGHTLY)
    address, client = schedule_address(olivia), signed_in(world.person(who))
    assert client.get(address).status_code == status
    for call in ("", "switch/", "run/", "remove/"):
        assert client.post(f"{address}{call}", NIGHTLY).status_code == status
    assert "Mondays at 03:30" in text_of(olivia, "/jobs/")


def test_each_background_worker_is_named(world: World) -> None:
    page = text_of(signed_in(world.olivia), "/jobs/")
    for name in ("Dispatcher", "Sealer", "Scheduler", "Worker for long jobs"):
        assert name in page
    assert len({str(name) for name in PARTS.values()}) == len(Part) == len(PARTS)


def test_the_page_of_jobs_costs_few_queries(world: World) -> None:
    for number in range(12):
        promise(world, "alice", content=f"Later {number}.")
    client = signed_in(world.olivia)
    client.get("/jobs/")
    assert len(statements(client, "/jobs/")) <= 20


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("*/20 * * * *", "Every 20 min"),
        ("0 * * * *", "Every hour"),
        ("15 * * * *", "Every hour, 15 min past"),
        ("0 2 * * *", "Daily at 02:00"),
        ("30 9 * * 5", "Fridays at 09:30"),
        ("0 0 1 * *", "Monthly on day 1 at 00:00"),
        ("0 0 1 1 *", "0 0 1 1 *"),
        ("0 9-17 * * 1-5", "0 9-17 * * 1-5"),
    ],
)
def test_a_cron_expression_becomes_a_sentence_where_it_is_short(cron: str, words: str) -> None:
    assert cron_words(cron) == words


@pytest.mark.parametrize(
    "cron",
    ["*/20 * * * *", "0 * * * *", "15 * * * *", "0 2 * * *", "30 9 * * 5", "0 0 1 * *", "0 0 1 1 *", "* * * * *"],
)
def test_the_form_of_a_schedule_says_its_cron_expression(cron: str) -> None:
    form = ScheduleForm(kind="audit.export", data=NIGHTLY | {"at": "", "weekday": ""} | rhythm_of(cron))
    assert form.is_valid(), form.errors
    assert cron_of(form.cleaned_data) == cron


def test_pages_tell_times_in_the_time_zone_of_their_reader(world: World) -> None:
    job = promise(world, "alice")
    client = signed_in(world.alice)
    assert ' UTC">' in text_of(client, f"/jobs/{job}/")
    assert client.post("/account/time-zone/", {"timezone": "Asia/Tokyo"}).status_code == 303
    assert ' JST">' in text_of(client, f"/jobs/{job}/")
    assert ' UTC">' in text_of(signed_in(world.olivia), f"/jobs/{job}/")
    refused = client.post("/account/time-zone/", {"timezone": "Mars/Base"})
    assert refused.status_code == 422
    assert 'value="Mars/Base"' in refused.content.decode()
    assert ' JST">' in text_of(client, f"/jobs/{job}/")


def test_schedules_show_the_next_runs_and_count_what_they_would_touch(world: World) -> None:
    world.client("olivia").post("memories/", {"content": "The boiler was serviced.", "namespace": "/plant"})
    client = signed_in(world.olivia)
    assert "Nothing runs in the next 24 hours" in text_of(client, "/schedules/")
    assert client.post("/jobs/schedules/new/?kind=audit.export", NIGHTLY | {"rhythm": "hour"}).status_code == 303
    page = text_of(client, "/schedules/")
    assert "Every hour, 30 min past" in page
    assert "Not scheduled" in page
    assert not re.search(r"would export \d", page)
    for asked in ("soon", schedule_address(client).rstrip("/").rpartition("/")[2]):
        assert re.search(r"would export [1-9]\d* entr(y|ies)", text_of(client, f"/schedules/?count={asked}"))
    off = client.post(f"{schedule_address(client)}switch/", {"enabled": "no", "next": "/schedules/"})
    assert (off.status_code, off["Location"]) == (303, "/schedules/")
    assert "Nothing runs in the next 24 hours" in text_of(client, "/schedules/?count=soon")
    elsewhere = client.post(f"{schedule_address(client)}switch/", {"enabled": "yes", "next": "https://evil.example/"})
    assert elsewhere["Location"] == "/jobs/"


def test_a_count_leads_to_memories_that_would_change(world: World, superuser: Superuser) -> None:
    reply = world.client("olivia").post("memories/", {"content": "Last week's menu.", "namespace": "/kitchen"})
    memory = reply.json["results"][0]["id"]
    superuser().execute("UPDATE vault_cube SET expires_at = now() - interval '1 hour' WHERE id = %s", [memory])
    client = signed_in(world.olivia)
    sweep = NIGHTLY | {"rhythm": "hour", **SWEEP}
    assert client.post("/jobs/schedules/new/?kind=lifecycle.sweep", sweep).status_code == 303
    page = text_of(client, "/schedules/?count=soon")
    assert f"/memories/{memory}/" in page
    assert "a memory in /kitchen" in page


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("bob", 403)])
def test_list_of_schedules_is_for_those_who_operate_the_tenant(world: World, who: str, status: int) -> None:
    client = signed_in(world.person(who))
    assert client.get("/schedules/").status_code == status
    assert 'href="/schedules/"' not in text_of(client, "/jobs/")


def test_schedules_of_another_tenant_stay_there(world: World) -> None:
    olivia = signed_in(world.olivia)
    olivia.post("/jobs/schedules/new/?kind=audit.export", NIGHTLY)
    address = schedule_address(olivia)
    schedule_id = address.rstrip("/").rpartition("/")[2]
    assert address not in text_of(signed_in(world.person("charlie")), f"/schedules/?count={schedule_id}")


def test_every_kind_with_a_schedule_is_named_and_explained() -> None:
    assert [kind for kind in schedulable_kinds() if kind not in KINDS or not meaning_words(kind)] == []


def test_the_page_of_schedules_costs_few_queries(world: World) -> None:
    client = signed_in(world.olivia)
    for _ in range(5):
        client.post("/jobs/schedules/new/?kind=audit.export", NIGHTLY)
    client.get("/schedules/")
    assert len(statements(client, "/schedules/")) <= 20


def test_form_of_a_new_schedule_shows_its_settings_and_their_choices(world: World) -> None:
    page = signed_in(world.olivia).get("/jobs/schedules/new/?kind=lifecycle.sweep").text
    assert '<option value="keep" selected>Keep score</option>' in page
    assert re.search(r'name="settings-archive"[^>]* checked', page)


def test_next_runs_are_shown_in_the_time_zone_of_their_schedule(world: World) -> None:
    olivia = signed_in(world.olivia)
    form = {"rhythm": "day", "at": "03:00", "timezone": "Asia/Shanghai", "enabled": "on", **SWEEP}
    assert olivia.post("/jobs/schedules/new/?kind=lifecycle.sweep", form).status_code == 303
    assert "03:00</time>" in olivia.get("/schedules/").text
