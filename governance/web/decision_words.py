"""Words for decisions: the rule that allows or denies an action."""

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.access.decisions.rules import Decision, policy_name
from governance.access.grants.rehearsal import AccessChange
from governance.vocabulary import Action

RULES: dict[str, Promise] = {
    "deny": gettext_lazy("A grant denies this, and a denial always wins."),
    "grant": gettext_lazy("A grant allows this."),
    "grants": gettext_lazy("Single grants allow this."),
    "private": gettext_lazy("This is private to somebody else."),
    "curated": gettext_lazy("Only the owner writes here."),
    "not_owner": gettext_lazy("This belongs to somebody else."),
    "read_only": gettext_lazy("This is read-only."),
    "scopes": gettext_lazy("The key lacks the scope."),
    "binding": gettext_lazy("The key is bound to something else."),
    "revoked": gettext_lazy("This key or membership has ended."),
    "system": gettext_lazy("The product itself may do this."),
}
GAINS: dict[Action, Promise] = {
    Action.READ: gettext_lazy("%(name)s could read this."),
    Action.WRITE: gettext_lazy("%(name)s could write this."),
    Action.SHARE: gettext_lazy("%(name)s could share this."),
    Action.GOVERN: gettext_lazy("%(name)s could govern this."),
}
LOSSES: dict[Action, Promise] = {
    Action.READ: gettext_lazy("%(name)s could no longer read this."),
    Action.WRITE: gettext_lazy("%(name)s could no longer write this."),
    Action.SHARE: gettext_lazy("%(name)s could no longer share this."),
    Action.GOVERN: gettext_lazy("%(name)s could no longer govern this."),
}


def rule_words(decision: Decision) -> str:
    """Return the reason of a decision in words; a rule of another release as its code."""
    rule = decision.rule
    if policy := policy_name(rule):
        return _("The policy %(policy)s does not allow this for this purpose. Choose another purpose.") % {
            "policy": policy
        }
    kind, _separator, role = rule.partition(":")
    if kind == "role":
        named = {"role": role}
        return (
            _("The role %(role)s allows this.") if decision.allowed else _("The role %(role)s does not allow this.")
        ) % named
    return str(RULES.get(rule, rule))


def mark_of(decision: Decision) -> str:
    """Return "yes"; "deny" if a grant or a policy denies; "no" if nothing allows."""
    if decision.allowed:
        return "yes"
    return "deny" if decision.rule == "deny" or policy_name(decision.rule) else "no"


def change_words(change: AccessChange) -> str:
    words = GAINS if change.gains else LOSSES
    return str(words[change.action]) % {"name": change.name}
