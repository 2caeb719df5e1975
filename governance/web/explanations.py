"""What a failure means, in the reader's language: one title and one sentence of advice for each code."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.errors import DomainError


@dataclass(frozen=True)
class Explanation:
    title: str | Promise
    advice: str | Promise = ""


EXPLANATIONS: dict[str, Explanation] = {
    "invalid": Explanation(_("That cannot be used as it is."), _("Go back, change it, and send it again.")),
    "unauthenticated": Explanation(_("Sign in first."), _("This is for members alone.")),
    "not_found": Explanation(
        _("There is nothing here."), _("It was deleted, has expired, or never was; or it is not yours to see.")
    ),
    "forbidden": Explanation(
        _("You may not do this."), _("Your role does not allow it. An owner or an admin can help.")
    ),
    "method_not_allowed": Explanation(_("This address does not take that.")),
    "conflict": Explanation(_("Someone else changed this at the same time."), _("Load the page again and retry.")),
    "in_flight": Explanation(_("The same request is being answered already."), _("Wait a moment for its answer.")),
    "version_conflict": Explanation(
        _("This memory has changed since you read it."), _("Load it again, and make your change anew.")
    ),
    "precondition_required": Explanation(
        _("It is not known which version you read."), _("Load the memory again, and make your change anew.")
    ),
    "idempotency_key_reused": Explanation(
        _("This key belongs to another request."), _("Send the request again under a key of its own.")
    ),
    "held": Explanation(_("A hold keeps this memory as it is."), _("It can be changed once the hold was released.")),
    "too_large": Explanation(_("That is too long."), _("Shorten it, or send it in parts.")),
    "unavailable": Explanation(
        _("Temporarily unavailable."),
        _("Something that this needs is down. Nothing was changed; try again in a moment."),
    ),
    "audit_unavailable": Explanation(
        _("The audit trail cannot be written."), _("What cannot be recorded does not happen. Try again in a moment.")
    ),
    "key_unavailable": Explanation(
        _("The key store cannot be reached."), _("Without its keys nothing can be opened. Try again in a moment.")
    ),
    "provider_unavailable": Explanation(
        _("The language model gave no answer."),
        _("Nothing was stored, and your question is kept. Try again in a moment."),
    ),
    "pii_refused": Explanation(
        _("Personal data or a secret is in it, and a policy refuses that here."), _("Take it out and send it again.")
    ),
    "pii_unavailable": Explanation(
        _("It could not be checked for personal data."), _("Nothing was stored. Try again in a moment.")
    ),
    "internal_error": Explanation(
        _("Something went wrong."), _("It is in the log under the request number below. Nothing was half done.")
    ),
}


def explanation_of(failure: DomainError) -> Explanation:
    """The words for `failure`; a test holds the table to the whole tree of errors."""
    return EXPLANATIONS[failure.code]
