"""Describes policies as sentences."""

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from governance.object_names import Name
from governance.policies.rules import AnyDocument, Examination, Pii, Purposes, Quota, Retention, Sharing, Where
from governance.policies.selectors import PolicyView
from governance.policies.services import quota_name
from governance.vocabulary import Measure, PublishApproval, QuotaTargetKind, RoleName
from vault.web.labels import PII_KINDS, SEMANTIC_TYPES, SENSITIVITIES
from vault.web.policy_forms import ACTIONS, APPROVALS, DAY, RECIPIENTS, ROLES

LIMITS: dict[Measure, Promise] = {
    Measure.MEMORIES: gettext_lazy("%(amount)s memories"),
    Measure.BYTES: gettext_lazy("%(amount)s bytes"),
    Measure.REQUESTS: gettext_lazy("%(amount)s requests a minute"),
    Measure.MODEL_TOKENS: gettext_lazy("%(amount)s model tokens a month"),
}
HOLDERS: dict[QuotaTargetKind, Promise] = {
    QuotaTargetKind.TENANT: gettext_lazy("The organisation"),
    QuotaTargetKind.MEMBER: gettext_lazy("Each member"),
    QuotaTargetKind.API_KEY: gettext_lazy("Each API key"),
}


def describe_document(document: AnyDocument, names: Mapping[UUID, Name]) -> str:
    """Return one to three sentences that describe the whole document."""
    if isinstance(document, Quota):
        return _describe_quota(document, names)
    about = where_words(document.where)
    if isinstance(document, Retention):
        return _describe_retention(document, about)
    if isinstance(document, Sharing):
        return _describe_sharing(document, about)
    if isinstance(document, Examination):
        return _describe_examination(document, about)
    return _describe_purposes(document, about) if isinstance(document, Purposes) else _describe_pii(document, about)


def where_words(where: Where) -> str:
    """Describe the scope of a policy, such as `Memories in /guests (confidential; tag leo)`."""
    about = _("Memories in %(path)s") % {"path": where.namespace} if where.namespace else _("Memories everywhere")
    conditions = [
        _join_sorted(SENSITIVITIES.get(sensitivity, sensitivity) for sensitivity in where.sensitivities),  # type: ignore[call-overload]
        _join_sorted(SEMANTIC_TYPES.get(semantic_type, semantic_type) for semantic_type in where.semantic_types),  # type: ignore[call-overload]
        _join_sorted(where.types),
        _("tag %(tags)s") % {"tags": _join_sorted(where.tags)} if where.tags else "",
    ]
    narrowed = "; ".join(condition for condition in conditions if condition)
    return f"{about} ({narrowed})" if narrowed else about


def _describe_retention(said: Retention, about: str) -> str:
    sentences = []
    if said.ttl_seconds is not None:
        sentences.append(
            _("%(about)s expire after %(time)s, unless their writer says otherwise.")
            % {"about": about, "time": _describe_time(said.ttl_seconds)}
        )
    if said.max_seconds is not None:
        sentences.append(
            _("%(about)s live for %(time)s at most.") % {"about": about, "time": _describe_time(said.max_seconds)}
        )
    if said.grace_days is not None:
        words = ngettext(
            "%(about)s can be restored for %(n)s day after their deletion.",
            "%(about)s can be restored for %(n)s days after their deletion.",
            said.grace_days,
        )
        sentences.append(words % {"about": about, "n": said.grace_days})
    return _join_sentences(sentences) or _("%(about)s live until somebody deletes them.") % {"about": about}


def _describe_sharing(said: Sharing, about: str) -> str:
    recipients = _join_sorted(RECIPIENTS[recipient] for recipient in said.share_with)
    sentences = [
        _("%(about)s may be shared with: %(whom)s.") % {"about": about, "whom": recipients}
        if recipients
        else _("%(about)s may be shared with nobody.") % {"about": about}
    ]
    if said.share_with and said.roles != frozenset(RoleName):
        sentences.append(
            _("Of the roles, only: %(roles)s.") % {"roles": _join_sorted(ROLES[role] for role in said.roles)}
        )
    sentences.append(_("Packs may publish them.") if said.publish else _("No pack may publish them."))
    if said.approval is not PublishApproval.OUTSIDE:
        sentences.append(_("A second member approves: %(when)s.") % {"when": APPROVALS[said.approval]})
    return _join_sentences(sentences)


def _describe_purposes(said: Purposes, about: str) -> str:
    if not said.purposes:
        return _("%(about)s can be read for no purpose at all.") % {"about": about}
    named = {"about": about, "purposes": _join_sorted(said.purposes)}
    return _("%(about)s can be read for these purposes only: %(purposes)s.") % named


def _describe_pii(said: Pii, about: str) -> str:
    sentences = [
        _("When a text has personal data or a secret: %(action)s. %(about)s.")
        % {"action": ACTIONS[said.action], "about": about}
    ]
    others = [
        f"{PII_KINDS.get(kind, kind)}: {ACTIONS[action]}"  # type: ignore[call-overload]
        for kind, action in sorted(said.kinds.items())
    ]
    if others:
        sentences.append(_("Otherwise for: %(kinds)s.") % {"kinds": "; ".join(others)})
    return _join_sentences(sentences)


def _describe_examination(said: Examination, about: str) -> str:
    limits = {name: f"{getattr(said, name):g}" for name in ("exact", "paraphrases", "strangers", "general")}
    sentence = _(
        "An adapter may be approved from these shares on: facts %(exact)s, other wordings %(paraphrases)s, strangers"
        " declined %(strangers)s, general prompts %(general)s; up to %(perplexity)s times the perplexity. %(about)s."
    )
    return sentence % {**limits, "perplexity": f"{said.perplexity:g}", "about": about}


def name_policy(view: PolicyView, names: Mapping[UUID, Name]) -> str:
    """Return a policy's name. A quota that was set among quotas has none: it is named after whose use it limits."""
    if isinstance(view.document, Quota) and view.name == quota_name(view.document):
        return _("Quota: %(whose)s") % {"whose": _name_target(view.document, names)}
    return view.name


def _name_target(quota: Quota, names: Mapping[UUID, Name]) -> str:
    named = names.get(quota.holder.id) if quota.holder.id else None
    return str(named or HOLDERS[quota.holder.kind])


def _describe_quota(said: Quota, names: Mapping[UUID, Name]) -> str:
    whose = _name_target(said, names)
    limits = [
        str(words) % {"amount": f"{amount:,}"}
        for measure, words in LIMITS.items()
        if (amount := said.limits.of(measure)) is not None
    ]
    if not limits:
        return _("%(whose)s: no limit.") % {"whose": whose}
    return _("%(whose)s may use at most %(limits)s.") % {"whose": whose, "limits": _join_sorted(limits)}


def _describe_time(seconds: int) -> str:
    """Describe a duration in whole days or hours, else in seconds."""
    if seconds % DAY == 0:
        days = seconds // DAY
        return ngettext("%(n)s day", "%(n)s days", days) % {"n": days}
    if seconds % 3600 == 0:
        hours = seconds // 3600
        return ngettext("%(n)s hour", "%(n)s hours", hours) % {"n": hours}
    return ngettext("%(n)s second", "%(n)s seconds", seconds) % {"n": seconds}


def _join_sorted(words: Iterable[object] | Collection[object]) -> str:
    return ", ".join(sorted(str(word) for word in words))


def _join_sentences(sentences: list[str]) -> str:
    return " ".join(sentences)
