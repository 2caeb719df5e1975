"""The inbox in the browser, and personal data marked on the page of a memory; all of it without JavaScript."""

from datetime import timedelta

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from governance.database import acting
from tests.factories import World
from tests.governance.privacy.failing_detectors import FAILING
from tests.governance.web.visitors import signed_in
from vault.models import Review
from vault.vocabulary import ReviewStatus
from vault.web.findings import mark_findings

TEXT = "Mail li.lei@example.cn, or call <b>13812345678</b>."


def add_flagged_memory(world: World, **fields: object) -> tuple[str, Review]:
    """The address of a memory in a shared namespace, and its review."""
    body = {"content": TEXT, "namespace": "/team", **fields}
    memory = world.client("alice").post("memories/", body).json["results"][0]
    with acting(world.alice.actor):
        return f"/memories/{memory['id']}/", Review.objects.get(cube_id=memory["id"])


def test_inbox_shows_each_finding_and_its_place(world: World) -> None:
    address, _ = add_flagged_memory(world, metadata={"owner": {"phone": "+86 139 1234 5678"}})
    page = signed_in(world.alice).get("/reviews/").content.decode()
    for shown in (address, "<mark>li.lei@example.cn</mark>", "<mark>13812345678</mark>", "metadata.owner.phone"):
        assert shown in page
    assert "<b>" not in page


def test_a_memory_shows_it_marked(world: World) -> None:
    address, _ = add_flagged_memory(world)
    page = signed_in(world.alice).get(address).content.decode()
    assert 'Mail <mark title="mail address">li.lei@example.cn</mark>, or call &lt;b&gt;<mark' in page


def test_redacting_is_asked_once_more_and_then_done(world: World) -> None:
    address, review = add_flagged_memory(world)
    client = signed_in(world.alice)
    asked = client.get(f"/reviews/{review.id}/accept/")
    assert asked.status_code == 200
    assert "2 places" in asked.content.decode()
    done = client.post(f"/reviews/{review.id}/accept/", {"redact_history": "on"})
    assert (done.status_code, done["Location"]) == (303, "/reviews/")
    page = client.get(address).content.decode()
    assert "Mail [email], or call" in page
    assert "li.lei" not in page
    assert client.get(f"/reviews/{review.id}/accept/").status_code == 409
    assert client.post(f"/reviews/{review.id}/accept/").status_code == 409


def test_the_history_stays_where_the_box_is_left_empty(world: World) -> None:
    address, review = add_flagged_memory(world)
    client = signed_in(world.alice)
    client.post(f"/reviews/{review.id}/accept/")
    assert "li.lei@example.cn" in client.get(address).content.decode()  # in its first version


def test_what_is_no_personal_data_leaves_the_inbox_and_is_marked_no_more(world: World) -> None:
    address, review = add_flagged_memory(world)
    client = signed_in(world.alice)
    assert client.post(f"/reviews/{review.id}/reject/").status_code == 303
    assert "li.lei" not in client.get("/reviews/").content.decode()
    assert "<mark" not in client.get(address).content.decode()
    assert "li.lei" in client.get("/reviews/?status=rejected").content.decode()


def test_a_script_gets_the_one_review_in_place(world: World) -> None:
    _, review = add_flagged_memory(world)
    part = signed_in(world.alice).post(f"/reviews/{review.id}/reject/", headers={"HX-Request": "true"})
    assert part.status_code == 200
    assert part.content.decode().strip().startswith("<article")
    assert "<form" not in part.content.decode()


@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("ada", 403), ("charlie", 404)])
def test_who_may_not_decide_is_refused(world: World, who: str, status: int) -> None:
    _, review = add_flagged_memory(world)
    client = signed_in(world.person(who))
    assert client.get(f"/reviews/{review.id}/accept/").status_code == status
    for verb in ("accept", "reject"):
        assert client.post(f"/reviews/{review.id}/{verb}/").status_code == status
    with acting(world.alice.actor):
        assert Review.objects.get(id=review.id).status == ReviewStatus.OPEN


def test_a_reader_sees_the_inbox_without_buttons(world: World) -> None:
    add_flagged_memory(world)
    page = signed_in(world.bob).get("/reviews/").content.decode()
    assert "<mark>li.lei@example.cn</mark>" in page
    assert "/reject/" not in page
    assert "li.lei" not in signed_in(world.charlie).get("/reviews/").content.decode()


def test_nobody_sees_it_without_signing_in(world: World) -> None:
    assert Client().get("/reviews/").status_code == 303


def test_what_could_not_be_checked_says_so(world: World) -> None:
    with override_settings(PII_DETECTOR=FAILING):
        add_flagged_memory(world)
    page = signed_in(world.alice).get("/reviews/").content.decode()
    assert "Could not be checked" in page
    assert "<mark" not in page


def test_without_findings_a_text_is_one_piece() -> None:
    assert [piece.text for piece in mark_findings("Nothing.", [])] == ["Nothing."]


def test_refused_question_shows_the_reason_and_stays_in_its_box(world: World) -> None:
    client = signed_in(world.alice)
    with override_settings(PII_ACTION="refuse"):
        page = client.post("/chat/", {"content": TEXT})
    assert page.status_code == 422
    assert "a policy refuses it here" in page.content.decode()
    assert "li.lei@example.cn" in page.content.decode()


def test_rejected_finding_is_marked_again_after_undo(world: World) -> None:
    address, review = add_flagged_memory(world)
    client = signed_in(world.alice)
    client.post(f"/reviews/{review.id}/reject/")
    assert client.post(f"/reviews/{review.id}/reopen/").status_code == 303
    assert "<mark>li.lei@example.cn</mark>" in client.get("/reviews/").content.decode()
    assert "<mark" in client.get(address).content.decode()


def test_redaction_offers_no_undo(world: World) -> None:
    _, review = add_flagged_memory(world)
    client = signed_in(world.alice)
    client.post(f"/reviews/{review.id}/accept/", {"redact_history": "on"})
    assert "/reopen/" not in client.get("/reviews/").content.decode()
    assert client.post(f"/reviews/{review.id}/reopen/").status_code == 409


def test_decision_leads_to_the_next_review_of_its_tab(world: World) -> None:
    _, first = add_flagged_memory(world)
    _, second = add_flagged_memory(world, content="Ring 13912345678 about the kiln.")
    client = signed_in(world.alice)
    page = client.get("/reviews/?kind=pii").content.decode()
    assert f'id="review-{second.id}"' in page
    assert f'id="review-{first.id}"' not in page
    assert f'name="case" value="{first.id}"' in page
    done = client.post(f"/reviews/{second.id}/reject/", {"kind": "pii", "case": str(first.id)})
    assert done["Location"] == f"/reviews/?kind=pii&case={first.id}"
    page = client.get(done["Location"]).content.decode()
    assert f'id="review-{first.id}"' in page
    assert "Rejected: Personal data." in page
    assert client.get("/reviews/?kind=conflicts").status_code == 200


def test_inbox_counts_what_was_decided_since_midnight_for_those_who_see_it(world: World) -> None:
    _, first = add_flagged_memory(world)
    _, second = add_flagged_memory(world, content="Ring 13912345678 about the kiln.")
    add_flagged_memory(world, content="Ring 13712345678 about the wheel.")
    client = signed_in(world.alice)
    assert "decided today" not in client.get("/reviews/").content.decode()
    client.post(f"/reviews/{first.id}/reject/")
    client.post(f"/reviews/{second.id}/accept/")
    assert "2 of 3 decided today" in client.get("/reviews/").content.decode()
    assert "decided today" not in signed_in(world.charlie).get("/reviews/").content.decode()
    with acting(world.alice.actor):
        Review.objects.filter(id=first.id).update(decided_at=timezone.now() - timedelta(days=2))
    assert "1 of 2 decided today" in client.get("/reviews/").content.decode()
