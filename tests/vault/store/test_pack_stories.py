"""Two stories of packs: a hospital's cases for another's triage agent, and a doctor's experience for a student."""

import pytest

from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import RoleName, Scope, Verb
from tests.factories import World, person_add
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.store.pack_factories import build_version, pack_of, publish_version, subscribe

CASES = (
    "Edna Stone, 71, with crushing chest pain for an hour: sent to the catheter room at once.",
    "Edna Stone came back with chest pain after a meal: an ulcer, treated by the ward.",
)
NAME = "Edna Stone"
PLACE = "/packs/acme/chest-pain"
QUESTION = "What about crushing chest pain?"


@pytest.fixture
def cases(olivia: Contract) -> tuple[str, str]:
    """The publication of the hospital's de-identified cases, for triage alone, and its data subject."""
    memories = [olivia.add(text, namespace="/cases", subject=NAME)["id"] for text in CASES]
    pack = pack_of(olivia, "chest-pain")
    version = build_version(olivia, pack, memories, subjects="anonymise")
    assert (version["state"], version["report"]["counts"]["anonymised"]) == ("ready", 2)
    made = publish_version(olivia, version, terms={"reads": 3, "purposes": ["triage"]})
    return made["id"], olivia.get("subjects/").json["results"][0]["id"]


@pytest.fixture
def agent(world: World, charlie: Contract, cases: tuple[str, str]) -> Contract:
    """A key of the other organisation's triage agent, bound to the cases and to one purpose."""
    subscribe(charlie, cases[0])
    member = person_add(world.other, "triage@other.example", RoleName.VIEWER).member
    bound = {"scopes": [Scope.MEMORIES_READ], "member": str(member.id), "namespaces": [PLACE], "purpose": "triage"}
    reply = charlie.post("api-keys/", bound)
    assert reply.status == 201, reply
    return Contract(key=reply.json["api_key"])


def test_triage_agent_of_another_hospital_reads_cases_without_names_and_each_call_is_checked(
    world: World, olivia: Contract, charlie: Contract, agent: Contract, cases: tuple[str, str]
) -> None:
    # For triage, and without a name.
    found = agent.search(QUESTION, namespaces=[PLACE])
    assert {memory["content"] for memory in found} == {text.replace(NAME, "[person]") for text in CASES}
    assert {row["pack"] for row in found} == {"acme/chest-pain"}
    file = olivia.get("packs/").json["results"][0]
    assert file["newest"]["report"]["counts"]["anonymised"] == 2

    # The same question for another purpose: nothing, and the reply says so.
    for purpose in ("", "research"):
        refused = charlie.post("memories/search/", {"query": QUESTION, "namespaces": [PLACE]}, x_memory_purpose=purpose)
        assert (refused.json["results"], len(refused.json["notices"])) == ([], 1)
        closed = charlie.get(f"memories/{found[0]['id']}/", x_memory_purpose=purpose)
        assert (closed.status, closed.json["code"]) == (403, "contract_purpose")
    assert agent.get(f"memories/{found[0]['id']}/", x_memory_purpose="research").status in {400, 403}

    # Each call that returned memories was counted, on both sides, and the fourth is refused.
    for _ in range(2):
        assert agent.get(f"memories/{found[0]['id']}/").status == 200
    assert agent.get(f"memories/{found[0]['id']}/").status == 429
    run_jobs()
    (agreed,) = olivia.get("contracts/").json["results"]
    (mine,) = charlie.get("subscriptions/").json["results"]
    theirs = olivia.get(f"contracts/{agreed['id']}/invocations/").json["results"]
    ours = charlie.get(f"subscriptions/{mine['id']}/invocations/").json["results"]
    assert [their["number"] for their in theirs] == [our["number"] for our in ours] == [3, 2, 1]

    # The audit log of the agent's organisation names the agent's calls.
    with acting(world.charlie.actor):
        reads = AuditEntry.objects.filter(verb__in=[Verb.MEMORY_READ, Verb.MEMORY_SEARCHED], object_ids__len__gt=0)
        assert reads.filter(context__purpose="triage").count() == 3


def test_patient_who_is_erased_at_the_hospital_is_erased_at_the_triage_too(
    olivia: Contract, charlie: Contract, agent: Contract, cases: tuple[str, str]
) -> None:
    assert len(agent.search(QUESTION, namespaces=[PLACE])) == 2
    assert olivia.post(f"subjects/{cases[1]}/erase/").status == 202
    run_jobs()
    assert agent.search(QUESTION, namespaces=[PLACE]) == []


DOSE = "Start with half of the usual dose for patients over eighty."
BETTER = "Start with half of the usual dose for frail patients over eighty, and look again after a week."


def test_doctor_shares_experience_with_a_student_who_asks_and_proposes_a_change(
    world: World, olivia: Contract, charlie: Contract
) -> None:
    doctor = Contract(key=person_add(world.acme, "doctor@acme.example", RoleName.ADMIN).key.text)
    student = charlie
    # The doctor's own notes become a pack for the student's school alone. The owner approves.
    note = doctor.add(DOSE, namespace="/experience")["id"]
    pack = pack_of(doctor, "geriatrics")
    offer = {"visibility": "tenants", "tenants": ["other"]}
    made = publish_version(doctor, build_version(doctor, pack, [note]), **offer)
    assert made["state"] == "waiting"
    assert student.get("publications/").json["count"] == 0
    assert olivia.post(f"publications/{made['id']}/approve/").status == 200

    # The student finds, installs and asks. The answer cites the doctor's pack.
    (found,) = student.get("publications/?q=geriatrics").json["results"]
    mine = f"subscriptions/{subscribe(student, found['id'])['id']}/"
    talk = student.post("conversations/", {}).json["id"]
    place = "/packs/acme/geriatrics"
    assert student.post("mounts/", {"namespace": place, "conversation": talk}).status == 201
    question = {"content": "How do I start the dose for patients over eighty?"}
    answer = student.post(f"conversations/{talk}/turns/", question).json
    assert DOSE in answer["content"]
    assert {citation["pack"] for citation in answer["citations"]} == {"acme/geriatrics"}

    # The student proposes a change, the doctor takes it into the next version, and the next answer has it.
    memory = student.search("dose", namespaces=[place])[0]["id"]
    change = {"memory": memory, "content": BETTER, "reason": "The ward looks again after a week."}
    assert student.post(f"{mine}proposals/", change).status == 201
    run_jobs()
    (asked,) = doctor.get("proposals/?state=open").json["results"]
    assert (asked["before"], asked["content"]) == (DOSE, BETTER)
    assert doctor.post(f"proposals/{asked['id']}/accept/").status == 200
    newer = publish_version(doctor, build_version(doctor, pack, [note], "1.1.0"), **offer)
    assert olivia.post(f"publications/{newer['id']}/approve/").status == 200
    run_jobs()
    assert student.get("proposals/?side=sent").json["results"][0]["state"] == "accepted"
    assert student.post(f"{mine}upgrade/", {"version": "1.1.0"}).status == 202
    run_jobs()
    assert BETTER in student.post(f"conversations/{talk}/turns/", question).json["content"]
    assert doctor.get(f"memories/{note}/").json["content"] == DOSE
