"""Explanations of errors in the reader's language: a title and a sentence of advice for each code."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from governance.errors import DomainError, Forbidden, SharingForbidden


@dataclass(frozen=True)
class Explanation:
    title: str | Promise
    advice: str | Promise = ""

    @property
    def text(self) -> str:
        """Title and advice as one text; Chinese sentences are joined without a space."""
        if not self.advice:
            return str(self.title)
        return gettext("%(title)s %(advice)s") % {"title": self.title, "advice": self.advice}


EXPLANATIONS: dict[str, Explanation] = {
    "invalid": Explanation(_("The input cannot be used."), _("Go back, correct it and send it again.")),
    "host_not_allowed": Explanation(
        _("This host name is not allowed."),
        _("Open the address that the server printed, or have this name added to its settings."),
    ),
    "unauthenticated": Explanation(_("Sign in first."), _("Only members may do this.")),
    "unknown_persona": Explanation(
        _("No persona of yours has this name."), _("Choose one from the list, or make it first.")
    ),
    "namespace_not_empty": Explanation(
        _("The namespace is not empty."), _("Move or delete its memories and the namespaces below it first.")
    ),
    "not_found": Explanation(
        _("There is nothing here."), _("It was deleted, has expired, never existed, or you may not see it.")
    ),
    "forbidden": Explanation(
        _("You may not do this."), _("Your role does not allow it. An owner or an admin can help.")
    ),
    "method_not_allowed": Explanation(_("This address does not accept that request.")),
    "not_acceptable": Explanation(_("This address does not offer that format.")),
    "unsupported_media_type": Explanation(_("This address does not accept that request.")),
    "conflict": Explanation(_("Someone else changed this at the same time."), _("Load the page again and retry.")),
    "in_flight": Explanation(_("The same request is being answered already."), _("Wait a moment for its answer.")),
    "version_conflict": Explanation(
        _("This memory has changed since you read it."), _("Load it again, then repeat your change.")
    ),
    "illegal_transition": Explanation(
        _("The memory cannot change to that state."), _("Load the memory again to see the possible states.")
    ),
    "invalid_etag": Explanation(_("The version cannot be read."), _("Load the memory again, then repeat your change.")),
    "too_many_at_once": Explanation(
        _("Your organisation is running too many large requests."), _("Wait a moment, then try again.")
    ),
    "too_many_jobs": Explanation(
        _("Too many of your jobs of this kind wait."), _("Let some end, or cancel them on the page of jobs.")
    ),
    "precondition_required": Explanation(
        _("The request does not say which version you read."), _("Load the memory again, then repeat your change.")
    ),
    "idempotency_key_reused": Explanation(
        _("This idempotency key belongs to another request."), _("Send the request again with a new key.")
    ),
    "held": Explanation(
        _("A hold prevents changes to this memory."), _("It can be changed after the hold is released.")
    ),
    "second_member_needed": Explanation(
        _("Two different members release a legal hold."),
        _("You are the only member here. Add a second one first; then both of you approve."),
    ),
    "address_not_proved": Explanation(
        _("Prove your address first."), _("Have a link mailed to your address, and open that link.")
    ),
    "own_hand_needed": Explanation(
        _("Two different persons release a legal hold."),
        _(
            "Another member has made a key or a sign-in link for you, and could be acting as you. "
            "Set a password by a mailed link, and sign in with it; or ask the operator for a key."
        ),
    ),
    "too_large": Explanation(_("That is too long."), _("Shorten it, or send it in parts.")),
    "quota_exceeded": Explanation(
        _("A quota is used up."), _("Wait, delete what is not needed, or ask an admin for more.")
    ),
    "too_many_attempts": Explanation(
        _("Too many attempts."), _("Wait before you try again; each further attempt makes the wait longer.")
    ),
    "second_factor_required": Explanation(
        _("A second factor is required here."), _("Your organisation asks for one. Set it up in your account.")
    ),
    "unavailable": Explanation(
        _("Temporarily unavailable."),
        _("A required service is down. Nothing was changed; try again in a moment."),
    ),
    "audit_unavailable": Explanation(
        _("The audit log cannot be written."),
        _("Nothing was changed, because it could not be recorded. Try again in a moment."),
    ),
    "key_unavailable": Explanation(
        _("The key store cannot be reached."), _("Without the keys no memory can be opened. Try again in a moment.")
    ),
    "provider_unavailable": Explanation(
        _("The language model gave no answer."),
        _("Nothing was stored, and your question is kept. Try again in a moment."),
    ),
    "blob_store_unavailable": Explanation(
        _("Archived content cannot be reached."),
        _("The archive is down, or lacks this memory. Try again in a moment, or ask whoever runs this installation."),
    ),
    "vector_index_unavailable": Explanation(
        _("The vector index cannot be reached."),
        _("Searches go on without it. Ask whoever runs this installation."),
    ),
    "quota_exhausted": Explanation(
        _("The contract of this pack allows no more reads in this period."),
        _("Wait for the next period, or agree on more reads with the publisher."),
    ),
    "contract_purpose": Explanation(
        _("The contract of this pack is for other purposes."),
        _("Name a purpose that the contract permits with the header X-Memory-Purpose."),
    ),
    "contract_expired": Explanation(
        _("The contract of this pack has expired."), _("Subscribe to the pack again to read it.")
    ),
    "contract_revoked": Explanation(
        _("The publisher has revoked the contract of this pack."),
        _("Ask the publisher to allow another subscription."),
    ),
    "contract_ended": Explanation(
        _("The contract of this pack has ended."), _("Subscribe to the pack again to read it.")
    ),
    "contract_export": Explanation(
        _("The contract of this pack does not let its memories leave."),
        _("Export other memories, or agree on export with the publisher."),
    ),
    "pack_invalid": Explanation(
        _("The file is no valid memory pack."),
        _("Ask its publisher for the file again."),
    ),
    "envelope_invalid": Explanation(
        _("The encrypted file does not open."),
        _("Ask for it again, encrypted to the public key that the page Import and export shows."),
    ),
    "pii_refused": Explanation(
        _("The text has personal data or a secret, and a policy refuses it here."),
        _("Remove it and send the text again."),
    ),
    "pii_unavailable": Explanation(
        _("The text could not be checked for personal data."), _("Nothing was stored. Try again in a moment.")
    ),
    "internal_error": Explanation(
        _("Something went wrong."),
        _("The server's log has the error under the request number below. No change was left incomplete."),
    ),
}


# Roles may allow these permissions: a policy denies them.
BY_PURPOSE = Explanation(
    _("A policy does not allow this for your purpose."),
    _("Choose another purpose at the top of the page, or ask an admin about the policy."),
)
BY_SHARING = Explanation(
    _("A sharing policy does not allow this."), _("Choose somebody else, or ask an admin about the policy.")
)

# Details of errors that a page may show; the API shows the same in English.
DETAILS: dict[str, Promise] = {
    "There is nothing at this address.": _("There is nothing at this address."),
    "The request cannot be read.": _("The request cannot be read."),
    "The database does not answer.": _("The database does not answer."),
    "The database cannot be reached.": _("The database cannot be reached."),
    "Only a member can hold a conversation.": _("Only a member can hold a conversation."),
    "The trial of this pack is being prepared. Try again in a minute.": _(
        "The trial of this pack is being prepared. Try again in a minute."
    ),
    "Something went wrong here; the log names this request's id.": _(
        "Something went wrong here; the log names this request's id."
    ),
    "Another request changed the same rows at the same time; try again.": _(
        "Another request changed the same rows at the same time; try again."
    ),
}


def detail_of(failure: DomainError) -> str:
    """Return the detail of `failure`, translated if it is a known sentence."""
    if failure.detail == failure.title:
        return ""
    if isinstance(failure, Forbidden) and failure.detail == f"The permission {failure.permission} is missing.":
        return gettext("The permission %(permission)s is missing.") % {"permission": failure.permission}
    if isinstance(failure, Forbidden) and failure.policy:
        return _denying_policy(failure)
    return str(DETAILS.get(failure.detail, failure.detail))


def _denying_policy(failure: Forbidden) -> str:
    """Return the policy behind a denial, and the purpose."""
    if isinstance(failure, SharingForbidden):
        return gettext("The sharing policy %(policy)s forbids this grant.") % {"policy": failure.policy}
    if not failure.purpose:
        return gettext("The policy %(policy)s allows this only for certain purposes, and you have chosen none.") % {
            "policy": failure.policy
        }
    return gettext("The policy %(policy)s does not allow this for the purpose %(purpose)s.") % {
        "policy": failure.policy,
        "purpose": failure.purpose,
    }


SESSION_ENDED = Explanation(_("Your session has ended."), _("Sign in, then send again what you wrote below."))


def explanation_of(failure: DomainError) -> Explanation:
    """Return the title and advice for `failure`; a test checks that every error class has them."""
    if isinstance(failure, SharingForbidden):
        return BY_SHARING
    if isinstance(failure, Forbidden) and failure.policy:
        return BY_PURPOSE
    return EXPLANATIONS[failure.code]
