"""Two houses that live by their rules: a clinic and a company; by list, search, chat and versions.

Export follows when there is one: it begins with the same `visible_to`.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from governance.vocabulary import RoleName
from tests.factories import World, person_add
from tests.vault.api.contract import Contract, contract
from tests.vault.outbox import run_jobs

ALLERGY = "Mr Grey is allergic to penicillin."
INVOICE = "Mr Grey owes 120 euros for the penicillin test."
PAY = "Salaries of the sales team rise by five percent in May."
TRAVEL = "Journeys by train are always first class."


@dataclass(frozen=True)
class Learnt:
    """The knowledge of a reader by each way, for a purpose."""

    listed: set[str]
    search_contents: set[str]
    quoted: set[str]


def learnt(reader: Contract, question: str, *, purpose: str = "") -> Learnt:
    said = {"x_memory_purpose": purpose}
    stated = {ALLERGY, INVOICE, PAY, TRAVEL}
    listed = {memory["content"] for memory in reader.get("memories/", **said).json["results"]}
    hits = reader.post("memories/search/", {"query": question}, **said).json["results"]
    conversation = reader.post("conversations/", {}, **said).json["id"]
    turn = reader.post(f"conversations/{conversation}/turns/", {"content": question}, **said).json
    quoted = {sentence for sentence in stated if sentence in turn["content"]}
    return Learnt(listed & stated, {hit["content"] for hit in hits} & stated, quoted)


def all_of(*texts: str) -> Learnt:
    return Learnt(set(texts), set(texts), set(texts))


NOTHING = Learnt(set(), set(), set())


@dataclass(frozen=True)
class Organisation:
    """Its people as clients of the API, by name, and the ids of its memories and namespaces."""

    people: dict[str, Contract]
    members: dict[str, str]
    memories: dict[str, dict[str, Any]]

    def grant(self, giver: str, kind: str, holder: str, path_of: str, action: str, **more: Any) -> dict[str, Any]:
        body = {
            "principal": {"kind": kind, "id": holder},
            "object": {"type": "namespace", "id": self.memories[path_of]["namespace"]["id"]},
            "action": action,
            **more,
        }
        reply = self.people[giver].post("grants/", body)
        assert reply.status == 201, reply
        found: dict[str, Any] = reply.json
        return found


def organisation(world: World, **roles: RoleName) -> tuple[dict[str, Contract], dict[str, str]]:
    people = {name: person_add(world.acme, f"{name}@acme.example", role) for name, role in roles.items()}
    clients = {name: Contract(key=person.key.text) for name, person in people.items()}
    return clients | {"owner": contract(world, "olivia")}, {
        name: str(person.member.id) for name, person in people.items()
    }


@pytest.fixture
def clinic(world: World) -> Organisation:
    """Records and accounts are the doctor's; a nurse treats, a receptionist bills."""
    people, members = organisation(world, doctor=RoleName.EDITOR, nurse=RoleName.VIEWER, receptionist=RoleName.VIEWER)
    memories = {
        "record": people["doctor"].add(ALLERGY, namespace="/users/doctor/records"),
        "invoice": people["doctor"].add(INVOICE, namespace="/users/doctor/accounts"),
    }
    run_jobs()
    clinic = Organisation(people, members, memories)
    treatment, billing = {"purpose": ["treatment"]}, {"purpose": ["billing"]}
    clinic.grant("doctor", "member", members["nurse"], "record", "write", conditions=treatment)
    clinic.grant("doctor", "member", members["receptionist"], "invoice", "read", conditions=billing)
    return clinic


QUESTION = "What about Mr Grey and penicillin?"


def test_in_the_clinic_the_purpose_decides(clinic: Organisation) -> None:
    doctor, nurse, receptionist = (clinic.people[name] for name in ("doctor", "nurse", "receptionist"))
    assert learnt(doctor, QUESTION) == all_of(ALLERGY, INVOICE)
    assert learnt(nurse, QUESTION, purpose="treatment") == all_of(ALLERGY)
    assert learnt(receptionist, QUESTION, purpose="billing") == all_of(INVOICE)
    for purpose in ("", "billing", "curiosity"):
        assert learnt(nurse, QUESTION, purpose=purpose) == NOTHING
    for purpose in ("", "treatment", "curiosity"):
        assert learnt(receptionist, QUESTION, purpose=purpose) == NOTHING


def test_in_the_clinic_the_nurse_writes_for_treatment_and_the_versions_follow(clinic: Organisation) -> None:
    nurse, record = clinic.people["nurse"], f"memories/{clinic.memories['record']['id']}/"
    change = {"content": f"{ALLERGY} Confirmed."}
    assert nurse.patch(record, change, if_match='"1"').status == 404
    assert nurse.patch(record, change, if_match='"1"', x_memory_purpose="treatment").status == 200
    versions = nurse.get(f"{record}versions/", x_memory_purpose="treatment").json
    assert [version["content"] for version in versions["results"]] == [f"{ALLERGY} Confirmed.", ALLERGY]
    assert nurse.get(f"{record}versions/").status == 404
    assert clinic.people["receptionist"].get(f"{record}versions/", x_memory_purpose="billing").status == 404


def test_in_the_clinic_a_nurse_who_leaves_the_ward_sees_nothing_more(clinic: Organisation) -> None:
    nurse, doctor = clinic.people["nurse"], clinic.people["doctor"]
    (grant,) = (given for given in doctor.get("grants/").json["results"] if given["action"] == "write")
    assert doctor.delete(f"grants/{grant['id']}/").status == 204
    assert learnt(nurse, QUESTION, purpose="treatment") == NOTHING


@pytest.fixture
def company(world: World) -> Organisation:
    """Policies are everybody's to read and the manager's to write; pay is the managers' alone."""
    people, members = organisation(world, manager=RoleName.EDITOR, employee=RoleName.EDITOR, intern=RoleName.VIEWER)
    memories = {
        "travel": people["owner"].add(TRAVEL, namespace="/policies"),
        "pay": people["owner"].add(PAY, namespace="/users/olivia/pay"),
    }
    run_jobs()
    company = Organisation(people, members, memories)
    company.grant("owner", "member", members["employee"], "travel", "write", effect="deny")
    company.grant("owner", "member", members["manager"], "pay", "read", conditions={"channel": ["api", "chat"]})
    return company


def test_in_the_company_policies_are_everybodys_and_pay_is_not(company: Organisation) -> None:
    pay, travel = "What about the salaries of the sales team?", "What about journeys by train?"
    for name in ("manager", "owner"):
        told = [learnt(company.people[name], question) for question in (pay, travel)]
        assert [outcome.listed for outcome in told] == [{PAY, TRAVEL}] * 2
        assert [outcome.quoted for outcome in told] == [{PAY}, {TRAVEL}]
        assert PAY in told[0].search_contents
        assert TRAVEL in told[1].search_contents
    for name in ("employee", "intern"):
        told = [learnt(company.people[name], question) for question in (pay, travel)]
        assert [outcome.listed for outcome in told] == [{TRAVEL}] * 2
        assert [outcome.quoted for outcome in told] == [set(), {TRAVEL}]
        assert all(outcome.search_contents <= {TRAVEL} for outcome in told)
        assert told[1].search_contents == {TRAVEL}


def test_in_the_company_only_the_manager_writes_policies(company: Organisation) -> None:
    policy = f"memories/{company.memories['travel']['id']}/"
    change = {"content": "Journeys by train are second class."}
    for name in ("employee", "intern"):
        assert company.people[name].patch(policy, change, if_match='"1"').status == 403
        assert company.people[name].post("memories/", {"content": "x", "namespace": "/policies"}).status == 403
        assert company.people[name].delete(policy).status == 403
    assert company.people["manager"].patch(policy, change, if_match='"1"').status == 200
    assert learnt(company.people["intern"], "journeys by train").listed == set()
    versions = company.people["intern"].get(f"{policy}versions/").json
    assert [version["content"] for version in versions["results"]] == [change["content"], TRAVEL]


def test_in_the_company_a_key_of_the_manager_bound_to_policies_knows_no_pay(
    company: Organisation, world: World
) -> None:
    preset = {"name": "policies bot", "namespaces": ["/policies"], "scopes": ["memories:read"]}
    owner = company.people["owner"]
    template = owner.post("role-templates/", preset).json["id"]
    key_id = company.people["manager"].get("me/").json["principal"]["id"]
    assert owner.post(f"role-templates/{template}/apply/", {"kind": "api_key", "id": key_id}).status == 200
    manager = company.people["manager"]
    assert manager.list_contents() == [TRAVEL]
    assert manager.search_contents("salaries journeys") == [TRAVEL]
    assert manager.post("memories/", {"content": "x", "namespace": "/policies"}).status == 403
