"""Permission is asked inside: whatever of a room acts for someone asks, or is listed with the reason."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.architecture.permission_calls import Module, read_module, silent_functions, untargeted_functions

ROOT = Path(__file__).resolve().parents[2]
DOORS = (  # what of a room reaches rows
    "services",
    "selectors",
    "locating",
    "lookup",
    "many",
    "principals",
    "jobs",
    "exports",
    "sinks",
    "unusual",
    "reports",
    "passwords",
    "factors",
    "browser_sessions",
    "identities",
    "last_use",
    "mail",
    "telling",
)

FINDING = ("locate", "locate_for_erasure", "locate_for_restore")
ASK_NOBODY = {
    ("vault.endpoints.services", "model_names"): "names only what every member may choose for a conversation",
    ("vault.endpoints.services", "models_list"): "is asked for an answer that the caller was allowed",
    ("governance.access.decisions.services", "authorize"): "it is the question",
    ("governance.audit.services", "record"): "tells of what the caller was allowed",
    ("governance.audit.services", "record_denial"): "tells of what was refused",
    ("governance.outbox.services", "emit"): "leaves work for what the caller was allowed",
    ("governance.outbox.services", "emit_later"): "leaves work for what the caller was allowed",
    ("vault.cubes.services", "emit_cubes_written"): "leaves work for what the caller was allowed",
    ("vault.cubes.services", "authorize_sharing"): "is a question itself: who may share what is private",
    ("vault.cubes.services", "amounts_take"): "counts what the caller was allowed",
    ("governance.outbox.services", "is_asked"): "tells only whether such work is left already",
    ("governance.outbox.services", "record_read"): "tells of what the caller was allowed",
    ("governance.access.decisions.services", "is_allowed"): "is the question itself",
    ("governance.web.jobs", "may_undo"): "is a question itself, about a job that the caller read",
    ("governance.tenants.services", "refuse_above"): "is a question itself: who may touch owners",
    ("governance.tenants.services", "refuse_wider_key"): "is a question itself: what a key may do to keys",
    ("governance.personas.selectors", "personas_of"): "is the filter itself: the actor's own and the tenant's agents",
    ("governance.personas.selectors", "persona_get"): "finds among personas_of alone",
    ("governance.tenants.selectors", "me_get"): "everyone may know who they are",
    ("governance.accounts.selectors", "member_user"): "everyone may know who they are",
    ("governance.accounts.selectors", "is_membership_proved"): "of the person who signs in, before there is an actor",
    ("governance.accounts.mail", "invitations_send"): "the worker's; mails what was allowed",
    ("governance.accounts.mail", "mail_send"): "the worker's; mails what its caller may tell that person",
    ("governance.accounts.mail", "resets_send"): "the worker's; mails an account its own link",
    ("governance.tenants.last_use", "note_key_use"): "notes a key that was just let in",
    ("vault.cubes.jobs", "cubes_index"): "the worker's; makes of a memory what it is found by",
    ("vault.cubes.jobs", "cubes_count_reads"): "the worker's; counts what was read",
    ("vault.scheduler.services", "working_sets_preload"): "the worker's; names what the next turn may need, to nobody",
    ("vault.graph.jobs", "cubes_link"): "the worker's; links what was written",
    ("vault.cubes.lookup", "lock_cubes"): "the caller asks about each that it found",
    **{("vault.cubes.lookup", name): "the caller asks about what it found" for name in FINDING},
    ("governance.access.decisions.services", "decide_on"): "is the question itself",
    ("governance.access.decisions.services", "authorize_disclosure"): "is the question itself",
    ("governance.access.decisions.services", "refuse_missing"): "asks it about an object that does not exist",
    ("governance.access.grants.services", "grant_locate"): "the caller asks about what it found",
    ("governance.access.grants.selectors", "grant_get"): "one's own grants; asks about those of others",
    (
        "governance.access.grants.selectors",
        "grants_list",
    ): "is the filter itself: what one was given, gave, or may share",
    ("governance.access.grants.selectors", "access_check"): "about oneself; asks about others",
    (
        "governance.access.grants.selectors",
        "find_object_by_name",
    ): "finds only what the actor may read; the caller asks",
    ("governance.access.grants.selectors", "objects_readable"): "is the filter itself: what the actor may read",
    ("governance.access.grants.selectors", "build_actor"): "makes the actor that is asked about",
    ("governance.personas.lookup", "persona_locate"): "the caller asks about what it found",
    ("vault.store.lookup", "pack_locate"): "the caller asks about what it found",
    ("vault.store.lookup", "version_locate"): "the caller asks about what it found",
    ("governance.idempotency.services", "reply_lock"): "a lock on the caller's own key",
    ("governance.idempotency.services", "find_reply"): "the caller's own; the call was asked about before",
    ("governance.idempotency.services", "reply_store"): "the caller's own; the call was asked about before",
    ("governance.idempotency.services", "replies_forget"): "part of an erasure that was allowed",
    ("governance.policies.selectors", "check_sharing"): "tells what policies say to whoever is about to share",
    ("governance.policies.selectors", "check_publishing"): "tells what policies say to whoever is about to publish",
    ("governance.policies.selectors", "publish_approval"): "tells what policies say to whoever is about to publish",
    ("governance.policies.selectors", "pii_rule"): "tells what policies say to whoever is about to write",
    ("governance.policies.selectors", "pii_action"): "tells what policies say to whoever is about to write",
    ("vault.namespaces.lookup", "namespace_by_path"): "finds a place; the caller asks about what it found",
    ("vault.namespaces.services", "private_owner"): "finds whose home a path lies in; the caller asks",
    ("vault.chat.selectors", "conversation_views"): "of rows that the caller found in the actor's reach",
    ("vault.cubes.services", "prepare_changed_texts"): "asks before it reads, and shows nothing",
    ("vault.cubes.selectors", "record_quotes"): "tells of what was opened for who may read it",
    ("vault.policies.selectors", "quotas_list"): "everyone may know what limits them; others' by the right to read",
    ("vault.policies.selectors", "quota_view"): "for a holder whom the caller may know of",
    ("vault.policies.jobs", "retention_start"): "the worker's; applies what was decided",
    # for a tenant, before there is an actor
    ("governance.privacy.services", "reference_token"): "a keyed hash of what the caller sent",
    ("governance.keys.services", "seal_for"): "who may is decided before",
    ("governance.keys.services", "open_sealed"): "who may is decided before",
    ("governance.keys.services", "token_maker"): "who may is decided before",
    ("governance.audit.reading.exports", "export_discard"): "the engine's, for a job that somebody cancelled who may",
    ("governance.tenants.principals", "reload_actor"): "makes the actor",
    ("governance.tenants.principals", "actor_now"): "makes the actor",
    ("governance.tenants.services", "command_line_actor"): "makes the actor",
    ("vault.layers.services", "persona_of_member"): "finds the actor's own persona alone",
}

LISTED_ABOVE = {
    ("governance.apikeys.requests", "is_key_log_readable"),  # is the question itself
    ("governance.access.decisions.services", "refuse_missing"),
    ("governance.access.grants.services", "grant_locate"),
    ("governance.access.grants.selectors", "grant_get"),
    ("governance.access.grants.selectors", "access_check"),
    ("governance.accounts.connected_apps", "own_key_revoke"),  # finds among the actor's own keys alone
    ("vault.lifecycle.renewal", "refuse_expired"),  # by cube_renew_ask
    ("governance.personas.lookup", "persona_locate"),
    ("vault.store.lookup", "pack_locate"),
    ("vault.store.lookup", "version_locate"),
    ("vault.store.contracts", "contract_locate"),
    ("vault.store.subscriptions", "subscription_locate"),
    ("vault.store.publications", "publication_locate"),
    ("vault.cubes.text_removal", "copies_blank"),  # part of an erasure that was allowed
    ("vault.reviews.withdrawals", "withdrawn_locate"),  # the caller asks about what it found
    ("vault.namespaces.management", "namespace_locate"),  # the caller asks about what it found
    # asks about the namespace and each below it
    ("vault.jobs.restoration", "namespace_restore_ask"),
    ("vault.jobs.restoration", "namespace_restore_later"),
    ("vault.jobs.restoration", "namespace_restore_preview"),
    # a session and a task are the caller's own names; a namespace narrows a list of what the actor may read
    ("vault.jobs.sessions", "session_end_ask"),
    ("vault.jobs.sessions", "session_end_later"),
    ("vault.namespaces.mounts", "session_token"),
    ("vault.namespaces.mounts", "task_token"),
    ("vault.namespaces.mounts", "mounts_list"),
    ("vault.layers.persona_scope", "scope_to_persona"),  # narrows; it speaks only as a persona that the actor may use
    ("vault.lifecycle.steps", "steps_write"),  # the caller holds the memories, and has asked
    # ask before they read, and show nothing
    ("vault.cubes.services", "prepare_changed_texts"),
    ("vault.cubes.moves_and_rollbacks", "prepare_earlier_texts"),
    ("vault.cubes.redaction", "prepare_clean_texts"),
    ("vault.reviews.services", "review_texts_prepare"),
    ("vault.reviews.feedback", "feedback_texts_prepare"),
    ("vault.layers.working_set", "preloaded_list"),  # ids alone, of which the caller keeps what the reader may read
    ("vault.scheduler.history", "load_turns"),  # ids and numbers, for the worker or one who may use the persona
    ("vault.scheduler.history", "load_memories"),  # of the rows that the caller names
    ("vault.layers.placement", "hot_emit"),  # leaves work for what the caller was allowed
    ("vault.layers.session_ends", "streams_end_others"),  # of the persona whose pages the caller may append
    ("vault.layers.persona_scope", "is_person"),  # says of a persona that the caller holds whether it is an agent
    ("vault.exchange.item_drafts", "origin_metadata"),  # of a memory in the caller's own file
    ("vault.exchange.imported_states", "write_states"),  # of memories that the caller just stored
    ("governance.outbox.claims", "event_claim"),  # the caller's own transaction wrote the event
    ("vault.pipelines.runs", "pipeline_run"),  # each step asks; the id of the pipeline is only recorded
    # ask about every memory that the proposal names
    ("vault.conversion.proposals", "proposal_get"),
    ("vault.conversion.proposals", "proposal_accept"),
    ("vault.conversion.proposals", "proposal_decline"),
    ("vault.conversion.proposals", "proposal_reopen"),
    ("vault.web.form_proposals", "decide"),
    ("vault.web.agents", "agent"),  # asks for the whole audit log, of which the calls of a key are a part
}


def _modules() -> dict[str, Module]:
    """Every module of governance and the vault, by its dotted name."""
    files = [path for house in ("governance", "vault") for path in (ROOT / house).rglob("*.py")]
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files}
    return {name: read_module(name, path.read_text(encoding="utf-8")) for path, name in names.items()}


def _silent(modules: Mapping[str, Module]) -> set[tuple[str, str]]:
    return {function for function in silent_functions(modules) if function[0].rpartition(".")[2] in DOORS}


def test_every_public_function_that_reaches_rows_asks() -> None:
    assert _silent(_modules()) == set(ASK_NOBODY)


def test_who_is_given_one_object_asks_about_that_object() -> None:
    assert untargeted_functions(_modules()) == {("vault.cubes.lookup", name) for name in FINDING} | LISTED_ABOVE


def test_asking_about_no_object_shows() -> None:
    source = "def thing_get(*, actor, thing_id):\n    authorize(actor, 1)\ndef other_get(*, actor, thing_id):\n    "
    module = read_module("a.services", source + "authorize(actor, 1, thing_id)\n")
    assert untargeted_functions({"a.services": module}) == {("a.services", "thing_get")}


@pytest.mark.parametrize(
    ("body", "asks"),
    [
        ("authorize(actor, 1)", True),
        ("with acting(actor):\n        authorize(actor, 1)", True),
        ("return Cube.objects.visible_to(actor)", True),
        ("return locate(actor)", True),
        ("return _own(actor)", True),
        ("return Cube.objects.all()", False),
        ("if actor.member_id:\n        authorize(actor, 1)", False),
        ("return [authorize for authorize in ()]", False),
        ("later(lambda: authorize(actor, 1))", False),
        ("actor.role or authorize(actor, 1)", False),
        ("authorise(actor, 1)", False),
        ("return careless(actor)", False),
    ],
)
def test_it_tells_who_asks_from_who_does_not(body: str, asks: bool) -> None:
    source = (
        "from a.locating import careless, locate\n"
        "def _own(actor):\n    return locate(actor)\n"
        f"def thing_get(*, actor):\n    {body}\n"
    )
    locating = "def locate(actor):\n    authorize(actor, 2)\ndef careless(actor):\n    pass\n"
    modules = {name: read_module(name, text) for name, text in (("a.services", source), ("a.locating", locating))}
    assert (("a.services", "thing_get") in _silent(modules)) is not asks


def test_a_service_that_stops_asking_shows() -> None:
    path = ROOT / "vault" / "cubes" / "services.py"
    careless = path.read_text(encoding="utf-8").replace("authorize(actor, permission)", "pass", 1)
    careless = careless.replace("build_cubes(", "build_nothing(")
    modules = _modules() | {"vault.cubes.services": read_module("vault.cubes.services", careless)}
    assert ("vault.cubes.services", "cubes_add") in _silent(modules)
