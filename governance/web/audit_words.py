"""Audit entries as sentences: `Alice read 14 memories in /users/alice`."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from governance.audit.reading.queries import READING
from governance.vocabulary import Action, Effect, Outcome, PrincipalKind, Verb
from governance.web.access_words import CHANNELS
from governance.web.audit_lines import Line

ENDINGS: dict[str, Promise] = {
    "created": gettext_lazy("added %(what)s"),
    "added": gettext_lazy("added %(what)s"),
    "updated": gettext_lazy("changed %(what)s"),
    "changed": gettext_lazy("changed %(what)s"),
    "deleted": gettext_lazy("deleted %(what)s"),
    "removed": gettext_lazy("removed %(what)s"),
    "restored": gettext_lazy("restored %(what)s"),
    "purged": gettext_lazy("erased %(what)s"),
    "erased": gettext_lazy("erased %(what)s"),
    "exported": gettext_lazy("exported %(what)s"),
    "redacted": gettext_lazy("redacted %(what)s"),
    "read": gettext_lazy("read %(what)s"),
    "moved": gettext_lazy("moved %(what)s"),
    "tiered": gettext_lazy("changed the storage tier of %(what)s"),
    "summarised": gettext_lazy("summed up %(what)s"),
    "importance_raised": gettext_lazy("raised the importance of %(what)s"),
    "ended": gettext_lazy("ended %(what)s"),
    "mounted": gettext_lazy("mounted %(what)s"),
    "unmounted": gettext_lazy("unmounted %(what)s"),
    "listed": gettext_lazy("looked at %(what)s"),
    "searched": gettext_lazy("searched and received %(what)s"),
    "versions_read": gettext_lazy("read the versions of %(what)s"),
    "indexed": gettext_lazy("made %(what)s searchable"),
    "frozen": gettext_lazy("froze %(what)s"),
    "unfrozen": gettext_lazy("unfroze %(what)s"),
    "released": gettext_lazy("released %(what)s"),
    "release_approved": gettext_lazy("approved the release of %(what)s"),
    "retried": gettext_lazy("retried %(what)s"),
    "finished": gettext_lazy("finished %(what)s"),
    "cancelled": gettext_lazy("cancelled %(what)s"),
    "undone": gettext_lazy("undid %(what)s"),
    "accepted": gettext_lazy("accepted %(what)s"),
    "rejected": gettext_lazy("rejected %(what)s"),
    "reopened": gettext_lazy("reopened %(what)s"),
    "revoked": gettext_lazy("revoked %(what)s"),
    "rotated": gettext_lazy("rotated %(what)s"),
    "bound": gettext_lazy("bound %(what)s"),
    "disabled": gettext_lazy("disabled %(what)s"),
    "applied": gettext_lazy("applied %(what)s"),
    "issued": gettext_lazy("issued %(what)s"),
    "verified": gettext_lazy("verified %(what)s"),
    "checked": gettext_lazy("checked %(what)s"),
    "export_created": gettext_lazy("asked for %(what)s"),
    "export_finished": gettext_lazy("finished %(what)s"),
    "export_read": gettext_lazy("downloaded %(what)s"),
    "checkpoint_read": gettext_lazy("downloaded %(what)s"),
    "reported": gettext_lazy("made a report of %(what)s"),
    "linked": gettext_lazy("linked %(what)s to a sign-in server"),
    "used": gettext_lazy("used %(what)s"),
    "yanked": gettext_lazy("yanked %(what)s"),
}
PHRASES: dict[str, Promise] = {
    Verb.TENANT_CREATED: gettext_lazy("founded %(what)s"),
    Verb.SUBJECT_CREATED: gettext_lazy("named %(what)s as a data subject"),
    Verb.CONVERSATION_CREATED: gettext_lazy("began %(what)s"),
    Verb.TURN_CREATED: gettext_lazy("spoke in a conversation"),
    Verb.JOB_CREATED: gettext_lazy("started %(what)s"),
    Verb.JOB_RETRIED: gettext_lazy("ran %(what)s again"),
    Verb.MEMORY_TRANSITIONED: gettext_lazy("changed the state of %(what)s from %(from)s to %(to)s"),
    Verb.MEMORY_PROMOTED: gettext_lazy("moved %(what)s to another layer"),
    Verb.CONTEXT_READ: gettext_lazy("received %(what)s as a context"),
    Verb.MEMORY_RELATED: gettext_lazy("related %(what)s"),
    Verb.MEMORY_UNRELATED: gettext_lazy("removed a relation of %(what)s"),
    Verb.MEMORY_UPDATED: gettext_lazy("corrected %(what)s"),
    Verb.MEMBER_CHANGED: gettext_lazy("changed own details"),
    Verb.MANIFEST_ISSUED: gettext_lazy("signed a list of %(what)s"),
    Verb.INVITATION_CREATED: gettext_lazy("invited %(what)s as %(role)s"),
    Verb.INVITATION_ACCEPTED: gettext_lazy("joined by the invitation of %(what)s"),
    Verb.INVITATION_REVOKED: gettext_lazy("took back the invitation of %(what)s"),
    Verb.TEMPLATE_APPLIED: gettext_lazy("gave %(what)s the preset %(template)s"),
    Verb.ACCESS_CHECKED: gettext_lazy("checked the access to %(what)s"),
    Verb.SESSION_REVOKED: gettext_lazy("signed out %(what)s"),
    Verb.PUBLICATION_CREATED: gettext_lazy("published %(what)s"),
    Verb.PUBLICATION_RATED: gettext_lazy("rated %(what)s"),
    Verb.PUBLICATION_REPORTED: gettext_lazy("reported %(what)s to the moderators"),
    Verb.PUBLICATION_MODERATED: gettext_lazy("decided on a report of %(what)s"),
    Verb.PROPOSAL_CREATED: gettext_lazy("proposed %(what)s"),
    Verb.PROPOSAL_DECLINED: gettext_lazy("declined %(what)s"),
    Verb.UPLOAD_CREATED: gettext_lazy("uploaded %(what)s"),
    Verb.KEYS_ROTATED: gettext_lazy("rotated the keys of %(what)s"),
    Verb.TENANT_DELETION_REQUESTED: gettext_lazy("requested the deletion of %(what)s"),
    Verb.TENANT_DELETED: gettext_lazy("deleted %(what)s"),
    Verb.MEMBER_SIGNED_IN: gettext_lazy("signed in"),
    Verb.MEMBER_SIGNED_OUT: gettext_lazy("signed out"),
    Verb.MEMBER_ROLE_CHANGED: gettext_lazy("changed the role of %(what)s from %(before)s to %(role)s"),
    Verb.ACCESS_DENIED: gettext_lazy("was refused %(what)s"),
    Verb.SIGN_IN_LINK_CREATED: gettext_lazy("made a sign-in link for %(what)s"),
    Verb.SIGN_IN_LINK_USED: gettext_lazy("opened a sign-in link"),
    Verb.SIGN_IN_FAILED: gettext_lazy("failed to sign in"),
    Verb.SIGN_IN_LOCKED: gettext_lazy("was blocked for a while after failed sign-ins"),
    Verb.PASSWORD_SET: gettext_lazy("set a password"),
    Verb.PASSWORD_RESET_ASKED: gettext_lazy("asked for a new password"),
    Verb.SECOND_FACTOR_ADDED: gettext_lazy("set up a second factor"),
    Verb.SECOND_FACTOR_REMOVED: gettext_lazy("removed a second factor"),
    Verb.RECOVERY_CODES_RENEWED: gettext_lazy("made new recovery codes"),
    Verb.RECOVERY_CODE_USED: gettext_lazy("used a recovery code"),
    Verb.SIGN_IN_RULES_READ: gettext_lazy("viewed the sign-in rules"),
    Verb.SIGN_IN_RULES_CHANGED: gettext_lazy("changed the sign-in rules"),
    Verb.APIKEY_REFUSED: gettext_lazy("was refused with a wrong API key"),
    Verb.REPLY_REPEATED: gettext_lazy("received a stored answer again"),
    Verb.WORK_RESUMED: gettext_lazy("resumed work that had failed"),
    Verb.PII_CHECKED: gettext_lazy("checked %(what)s for personal data"),
    Verb.MEMORY_FEEDBACK_GIVEN: gettext_lazy("gave feedback on %(what)s"),
    Verb.MEMORY_QUARANTINED: gettext_lazy("put %(what)s in quarantine"),
    Verb.RETENTION_APPLIED: gettext_lazy("applied retention to %(what)s"),
    Verb.OPERATOR_CHANGED: gettext_lazy("changed the operators of the installation"),
    Verb.OPERATOR_VIEWED: gettext_lazy("looked at %(what)s as an operator"),
    Verb.AUDIT_LISTED: gettext_lazy("looked at the audit log"),
    Verb.AUDIT_REPORTED: gettext_lazy("made a report of permission changes"),
    Verb.AUDIT_VERIFIED: gettext_lazy("verified the audit log"),
    Verb.DELIVERY_REPLAYED: gettext_lazy("sent an event to %(what)s again"),
    Verb.WEBHOOK_TESTED: gettext_lazy("tested %(what)s"),
    Verb.WEBHOOK_ROTATED: gettext_lazy("made a new secret for %(what)s"),
    Verb.PIPELINE_RUN: gettext_lazy("ran a pipeline on %(what)s"),
    Verb.FORM_CHANGED: gettext_lazy("mounted, unmounted or pinned %(what)s"),
    Verb.FORM_APPROVED: gettext_lazy("approved %(what)s"),
    Verb.FORM_PROPOSED: gettext_lazy("proposed %(what)s"),
    Verb.FORM_PROPOSAL_ACCEPTED: gettext_lazy("accepted %(what)s"),
    Verb.FORM_PROPOSAL_DECLINED: gettext_lazy("declined %(what)s"),
    Verb.FORM_PROPOSAL_REOPENED: gettext_lazy("opened %(what)s again"),
    Verb.QUOTA_CHANGED: gettext_lazy("changed the quota %(what)s"),
}


# Changes of memories that set one kind of field alone; other changes are corrections.
CHANGES: dict[frozenset[str], Promise] = {
    frozenset({"namespace"}): gettext_lazy("moved %(what)s"),
    frozenset({"tags"}): gettext_lazy("changed the tags of %(what)s"),
    frozenset({"expires_at"}): gettext_lazy("changed the expiry of %(what)s"),
    frozenset({"access_level"}): gettext_lazy("changed who may read %(what)s"),
    frozenset({"sensitivity"}): gettext_lazy("changed the sensitivity of %(what)s"),
    frozenset({"importance"}): gettext_lazy("changed the importance of %(what)s"),
    frozenset({"priority"}): gettext_lazy("changed the priority of %(what)s"),
    frozenset({"valid_to"}): gettext_lazy("ended the validity of %(what)s"),
}
DEEDS: dict[str, Promise] = {
    Action.READ: gettext_lazy("reading"),
    Action.WRITE: gettext_lazy("writing"),
    Action.SHARE: gettext_lazy("sharing"),
    Action.GOVERN: gettext_lazy("governing"),
}
GRANTS: dict[tuple[str, str], Promise] = {
    (Verb.GRANT_CREATED, Effect.ALLOW): gettext_lazy("gave %(holder)s %(deed)s of %(what)s"),
    (Verb.GRANT_CREATED, Effect.DENY): gettext_lazy("forbade %(holder)s %(deed)s of %(what)s"),
    (Verb.GRANT_CHANGED, Effect.ALLOW): gettext_lazy("changed the grant of %(deed)s of %(what)s to %(holder)s"),
    (Verb.GRANT_CHANGED, Effect.DENY): gettext_lazy("changed the ban on %(deed)s of %(what)s for %(holder)s"),
    (Verb.GRANT_REVOKED, Effect.ALLOW): gettext_lazy("took from %(holder)s %(deed)s of %(what)s"),
    (Verb.GRANT_REVOKED, Effect.DENY): gettext_lazy("lifted for %(holder)s the ban on %(deed)s of %(what)s"),
}


def _nouns() -> dict[str, Callable[[int], str]]:
    """Return functions that give the noun for a number of objects, by object type."""
    return {
        "memory": lambda n: ngettext("%(n)s memory", "%(n)s memories", n),
        "member": lambda n: ngettext("%(n)s member", "%(n)s members", n),
        "conversation": lambda n: ngettext("%(n)s conversation", "%(n)s conversations", n),
        "invitation": lambda n: ngettext("%(n)s invitation", "%(n)s invitations", n),
        "api_key": lambda n: ngettext("%(n)s API key", "%(n)s API keys", n),
        "job": lambda n: ngettext("%(n)s job", "%(n)s jobs", n),
        "schedule": lambda n: ngettext("%(n)s schedule", "%(n)s schedules", n),
        "hold": lambda n: ngettext("%(n)s legal hold", "%(n)s legal holds", n),
        "namespace": lambda n: ngettext("%(n)s namespace", "%(n)s namespaces", n),
        "session": lambda n: ngettext("%(n)s session", "%(n)s sessions", n),
        "review": lambda n: ngettext("%(n)s review", "%(n)s reviews", n),
        "grant": lambda n: ngettext("%(n)s grant", "%(n)s grants", n),
        "persona": lambda n: ngettext("%(n)s persona", "%(n)s personas", n),
        "segment": lambda n: ngettext("%(n)s segment", "%(n)s segments", n),
        "policy": lambda n: ngettext("%(n)s policy", "%(n)s policies", n),
        "role_template": lambda n: ngettext("%(n)s preset", "%(n)s presets", n),
        "subject": lambda n: ngettext("%(n)s data subject", "%(n)s data subjects", n),
        "turn": lambda n: ngettext("%(n)s turn of a conversation", "%(n)s turns of a conversation", n),
        "manifest": lambda n: ngettext("%(n)s manifest", "%(n)s manifests", n),
        "audit_export": lambda n: ngettext("%(n)s export", "%(n)s exports", n),
        "audit_entry": lambda n: ngettext("%(n)s audit entry", "%(n)s audit entries", n),
        "audit_checkpoint": lambda n: ngettext("%(n)s checkpoint", "%(n)s checkpoints", n),
        "audit_sink": lambda n: ngettext("%(n)s destination of the log", "%(n)s destinations of the log", n),
        "sync_peer": lambda n: ngettext("%(n)s peer of syncs", "%(n)s peers of syncs", n),
        "upload": lambda n: ngettext("%(n)s uploaded file", "%(n)s uploaded files", n),
        "webhook": lambda n: ngettext("%(n)s webhook", "%(n)s webhooks", n),
        "model_endpoint": lambda n: ngettext("%(n)s language model", "%(n)s language models", n),
        "tenant": lambda n: ngettext("%(n)s organisation", "%(n)s organisations", n),
        "view": lambda n: ngettext("%(n)s saved view", "%(n)s saved views", n),
        "pipeline": lambda n: ngettext("%(n)s pipeline", "%(n)s pipelines", n),
        "pack": lambda n: ngettext("%(n)s pack", "%(n)s packs", n),
        "pack_version": lambda n: ngettext("%(n)s version of a pack", "%(n)s versions of a pack", n),
        "subscription": lambda n: ngettext("%(n)s subscription", "%(n)s subscriptions", n),
        "contract": lambda n: ngettext("%(n)s contract", "%(n)s contracts", n),
        "publication": lambda n: ngettext("%(n)s publication", "%(n)s publications", n),
        "proposal": lambda n: ngettext("%(n)s proposal", "%(n)s proposals", n),
    }


NOUNS = _nouns()
PLACEHOLDER = re.compile(r"%\((\w+)\)s")
OBJECT_MARK = "\u2063"  # stands for the object while a phrase is cut at it; no text of the product has this character


@dataclass(frozen=True)
class Sentence:
    """The parts of a sentence: `who` `before` `what` `after`, where `what` is the object. code: the verb; channel: in
    words.
    """

    who: str
    before: str
    what: str
    after: str
    code: str
    channel: str
    is_reading: bool
    is_denied: bool

    def __str__(self) -> str:
        return " ".join(part for part in (self.who, self.before, self.what, self.after) if part)


def _channel_words(channel: str) -> str:
    """Return the name of a channel; of an unknown one, its code."""
    return str(CHANNELS.get(channel, channel))


def sentence_of(line: Line) -> Sentence:
    """Return the sentence of an entry; a verb of another release appears as its code."""
    verb = line.entry.verb
    ending = verb.rpartition(".")[2]
    before, cut, after = _phrase(line).partition(OBJECT_MARK)
    return Sentence(
        who=who_words(line),
        before=before.strip(),
        what=what_words(line) if cut else "",
        after=after.strip(),
        code=verb,
        channel=_channel_words(str(line.entry.context.get("channel", ""))),
        is_reading=ending in READING,
        is_denied=line.entry.outcome == Outcome.DENIED,
    )


def _phrase(line: Line) -> str:
    """Return the phrase of an entry's verb with the facts of its detail, and the mark in place of the object."""
    entry = line.entry
    effect = str(entry.detail.get("effect", ""))
    changed = frozenset(str(entry.detail.get("changed", "")).split())
    phrase = GRANTS.get((entry.verb, effect)) or (CHANGES.get(changed) if entry.verb == Verb.MEMORY_UPDATED else None)
    phrase = phrase or PHRASES.get(entry.verb) or ENDINGS.get(entry.verb.rpartition(".")[2])
    facts = {fact.name: fact.shown for fact in line.detail} | {"what": OBJECT_MARK}
    facts["deed"] = str(DEEDS.get(str(entry.detail.get("action", "")), ""))
    words = str(phrase) if phrase else f"{entry.verb} %(what)s"
    return PLACEHOLDER.sub(lambda found: facts.get(found[1]) or "…", words)


def who_words(line: Line) -> str:
    """Return the actor's name, marked as a key's if one acted; "MemOS" for the system."""
    if line.entry.principal_kind == PrincipalKind.SYSTEM:
        return "MemOS"
    who = str(line.who) if line.who else str(line.entry.principal_kind)
    if line.entry.principal_kind == PrincipalKind.API_KEY:
        return _("Key %(name)s") % {"name": who}
    return who


def what_words(line: Line) -> str:
    """Return the names of the objects; memories as their number and namespaces."""
    entry = line.entry
    count = len(entry.object_ids)
    noun = NOUNS.get(entry.object_type)
    counted = noun(count) % {"n": count} if noun else entry.object_type.replace("_", " ")
    if line.has_place and line.names:
        places = ", ".join(str(name) for name in line.names) + (" …" if line.more else "")
        return _("%(what)s in %(path)s") % {"what": counted, "path": places}
    if not line.names:
        return counted
    names = ", ".join(str(name) for name in line.names)
    return _("%(names)s and %(number)s more") % {"names": names, "number": line.more} if line.more else names
