"""The report of permission changes: every verb is in it or, said here, is not; and what is done shows in it."""

from governance.audit.reading.selectors import CHANGES
from governance.vocabulary import Verb
from tests.factories import World
from tests.governance.accounts.people import code_of, give_password, set_up_factor, sign_in
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract

# These change nobody's rights. Reading, and being refused:
READINGS = {
    Verb.MEMBERS_LISTED,
    Verb.INVITATIONS_LISTED,
    Verb.APIKEYS_LISTED,
    Verb.SESSIONS_LISTED,
    Verb.SIGN_IN_RULES_READ,
    Verb.GRANT_LISTED,
    Verb.ACCESS_CHECKED,
    Verb.ACCESS_DENIED,
    Verb.PERSONA_READ,
    Verb.TEMPLATE_READ,
    Verb.HOLD_READ,
    Verb.SUBJECT_LISTED,
    Verb.SUBJECT_READ,
    Verb.MEMORY_READ,
    Verb.MEMORY_LISTED,
    Verb.MEMORY_SEARCHED,
    Verb.VERSIONS_READ,
    Verb.CONTEXT_READ,
    Verb.CONVERSATION_READ,
    Verb.JOB_READ,
    Verb.REVIEW_LISTED,
    Verb.PROVENANCE_READ,
    Verb.REPLY_REPEATED,
    Verb.AUDIT_LISTED,
    Verb.AUDIT_READ,
    Verb.AUDIT_REPORTED,
    Verb.AUDIT_VERIFIED,
    Verb.AUDIT_EXPORT_CREATED,
    Verb.AUDIT_EXPORT_FINISHED,
    Verb.AUDIT_EXPORT_READ,
    Verb.AUDIT_CHECKPOINT_READ,
    Verb.OPERATOR_VIEWED,
    Verb.PACK_READ,
    Verb.PACK_LISTED,
    Verb.SUBSCRIPTION_LISTED,
    Verb.SUBSCRIPTION_READ,
    Verb.CONTRACT_LISTED,
    Verb.CONTRACT_READ,
    Verb.PUBLICATION_LISTED,
    Verb.PACK_VERSION_READ,
    Verb.PUBLICATION_READ,
}
# Coming and going, by means that were given before:
SIGNING_IN = {
    Verb.MEMBER_SIGNED_IN,
    Verb.MEMBER_SIGNED_OUT,
    Verb.SIGN_IN_LINK_USED,
    Verb.SIGN_IN_FAILED,
    Verb.SIGN_IN_LOCKED,
    Verb.APIKEY_REFUSED,
    Verb.PASSWORD_RESET_ASKED,
    Verb.RECOVERY_CODE_USED,
}
# Work with memory:
WORK = {
    Verb.SEGMENT_CHANGED,
    Verb.KEYS_ROTATED,
    Verb.TENANT_DELETION_REQUESTED,
    Verb.TENANT_DELETED,
    Verb.NAMESPACE_CREATED,
    Verb.NAMESPACE_ENDED,
    Verb.NAMESPACE_SUMMARISED,
    Verb.CONVERSATION_SUMMARISED,
    Verb.NAMESPACE_RESTORED,
    Verb.MOUNT_CREATED,
    Verb.MOUNT_REMOVED,
    Verb.SUBJECT_CREATED,
    Verb.SUBJECT_EXPORTED,
    Verb.SUBJECT_ERASED,
    Verb.MEMORY_CREATED,
    Verb.MEMORY_UPDATED,
    Verb.MEMORY_DELETED,
    Verb.MEMORY_RESTORED,
    Verb.MEMORY_TRANSITIONED,
    Verb.MEMORY_PROMOTED,
    Verb.MEMORY_RELATED,
    Verb.MEMORY_UNRELATED,
    Verb.MEMORY_FEEDBACK_GIVEN,
    Verb.MEMORY_QUARANTINED,
    Verb.MEMORY_TIERED,
    Verb.MEMORY_IMPORTANCE_RAISED,
    Verb.MEMORY_EXPORTED,
    Verb.MEMORY_PURGED,
    Verb.MEMORY_INDEXED,
    Verb.MEMORY_REDACTED,
    Verb.RETENTION_APPLIED,
    Verb.PII_CHECKED,
    Verb.REVIEW_ACCEPTED,
    Verb.REVIEW_REJECTED,
    Verb.REVIEW_REOPENED,
    Verb.MEMBER_CHANGED,
    Verb.CONVERSATION_CREATED,
    Verb.CONVERSATION_UPDATED,
    Verb.CONVERSATION_DELETED,
    Verb.TURN_CREATED,
    Verb.JOB_CREATED,
    Verb.JOB_RETRIED,
    Verb.JOB_FINISHED,
    Verb.JOB_CANCELLED,
    Verb.JOB_UNDONE,
    Verb.SCHEDULE_CREATED,
    Verb.SCHEDULE_CHANGED,
    Verb.SCHEDULE_REMOVED,
    Verb.WEBHOOK_CREATED,
    Verb.WEBHOOK_CHANGED,
    Verb.WEBHOOK_REMOVED,
    Verb.WEBHOOK_ROTATED,
    Verb.WEBHOOK_TESTED,
    Verb.DELIVERY_REPLAYED,
    Verb.VIEW_CREATED,
    Verb.VIEW_REMOVED,
    Verb.PIPELINE_CREATED,
    Verb.PIPELINE_CHANGED,
    Verb.PIPELINE_REMOVED,
    Verb.PIPELINE_RUN,
    Verb.FORM_CHANGED,
    Verb.FORM_APPROVED,
    Verb.FORM_PROPOSED,
    Verb.FORM_PROPOSAL_ACCEPTED,
    Verb.FORM_PROPOSAL_DECLINED,
    Verb.FORM_PROPOSAL_REOPENED,
    Verb.WORK_RESUMED,
    Verb.SUBSCRIPTION_CREATED,
    Verb.SUBSCRIPTION_CHANGED,
    Verb.SUBSCRIPTION_REVOKED,
    Verb.SUBSCRIPTION_ENDED,
    Verb.CONTRACT_CREATED,
    Verb.CONTRACT_CHANGED,
    Verb.CONTRACT_REVOKED,
    Verb.CONTRACT_ENDED,
    Verb.PACK_CREATED,
    Verb.PACK_CHANGED,
    Verb.PACK_REMOVED,
    Verb.PACK_VERSION_CREATED,
    Verb.PACK_VERSION_CHANGED,
    Verb.PACK_VERSION_YANKED,
    Verb.PACK_VERSION_REMOVED,
    Verb.PUBLICATION_CREATED,
    Verb.PUBLICATION_ACCEPTED,
    Verb.PUBLICATION_REJECTED,
    Verb.PUBLICATION_RATED,
    Verb.PUBLICATION_REPORTED,
    Verb.PROPOSAL_CREATED,
    Verb.PROPOSAL_ACCEPTED,
    Verb.PROPOSAL_DECLINED,
    Verb.PUBLICATION_MODERATED,
    Verb.SYNC_PEER_CREATED,
    Verb.SYNC_PEER_CHANGED,
    Verb.SYNC_PEER_REMOVED,
    Verb.UPLOAD_CREATED,
    Verb.UPLOAD_REMOVED,
    Verb.PROPOSAL_LISTED,
    Verb.MANIFEST_ISSUED,
    Verb.MANIFEST_VERIFIED,
}


def test_every_verb_is_listed_as_a_change_of_permissions_or_as_none() -> None:
    """A new verb must be listed here or in CHANGES."""
    sides = [CHANGES, READINGS, SIGNING_IN, WORK]
    assert sum(len(side) for side in sides) == len(Verb)
    assert frozenset().union(*sides) == frozenset(Verb)


def test_what_changes_rights_is_reported_and_what_reads_is_not(world: World) -> None:
    olivia, ada = Contract(key=world.olivia.key.text), Contract(key=world.ada.key.text)
    memory = olivia.add("Shared.", namespace="/team")["id"]
    bob = str(world.bob.member.id)
    key = olivia.post("api-keys/", {"scopes": ["chat"]}).json["id"]
    olivia.patch(f"api-keys/{key}/", {"namespaces": ["/team"]})
    preset = olivia.post("role-templates/", {"name": "helper", "role": "editor"}).json["id"]
    olivia.post(f"role-templates/{preset}/apply/", {"kind": "member", "id": bob})
    olivia.patch(f"role-templates/{preset}/", {"role": None})
    about = {"principal": {"kind": "member", "id": bob}, "object": {"type": "memory", "id": memory}, "action": "read"}
    olivia.delete(f"grants/{olivia.post('grants/', about).json['id']}/")
    olivia.post("policies/", {"kind": "pii", "name": "p", "document": {"action": "allow"}})
    for address in ("members/", "api-keys/", "grants/", "personas/", "role-templates/", "holds/"):
        assert olivia.get(address).status == 200
    reported = {row["verb"] for row in ada.get("audit/permission-changes/?page_size=200").json["results"]}
    expected = {
        "apikey.created",
        "apikey.bound",
        "template.created",
        "template.applied",
        "template.changed",
        "member.role_changed",
        "grant.created",
        "grant.revoked",
        "policy.created",
    }
    assert expected <= reported <= CHANGES


def test_a_grant_is_reported_with_the_kinds_of_its_conditions_and_its_end_and_not_with_what_they_say(
    world: World,
) -> None:
    olivia, ada = Contract(key=world.olivia.key.text), Contract(key=world.ada.key.text)
    memory = olivia.add("Shared.", namespace="/team")["id"]
    about = {
        "principal": {"kind": "member", "id": str(world.bob.member.id)},
        "object": {"type": "memory", "id": memory},
        "action": "read",
    }
    conditions = {"purpose": ["heron"], "channel": ["chat"], "daily": {"from": "08:00", "until": "17:00"}}
    end = "2999-01-01T00:00:00Z"
    olivia.post("grants/", {**about, "conditions": conditions, "expires_at": end})
    olivia.post("grants/", {**about, "action": "share"})
    rows = ada.get("audit/permission-changes/?page_size=200").json["results"]
    told = [row["detail"] for row in rows if row["verb"] == "grant.created"]
    assert [(entry["conditions"], entry["expires_at"]) for entry in told] == [
        ("", None),
        ("channel daily purpose", "2999-01-01T00:00:00+00:00"),
    ]
    assert not any(word in str(told) for word in ("heron", "17:00"))


def test_a_second_factor_and_the_rules_of_signing_in_are_reported(world: World) -> None:
    give_password(world.bob)
    client = sign_in(world.bob.email)
    secret, _codes = set_up_factor(client)
    assert client.post("/account/second-factor/remove/", {"code": code_of(secret)}).status_code == 303
    rules = signed_in(world.olivia).post("/settings/sign-in/second-factor/", {"required": "yes"})
    assert rules.status_code == 303, rules.content
    rows = Contract(key=world.ada.key.text).get("audit/permission-changes/?page_size=200").json["results"]
    expected = {"password.set", "second_factor.added", "second_factor.removed", "sign_in_rules.changed"}
    assert expected <= {row["verb"] for row in rows}
