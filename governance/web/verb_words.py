"""The verbs of audit entries and webhook events as choices in words, by what they are about."""

from collections.abc import Iterable
from itertools import groupby

from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from governance.vocabulary import Outcome
from governance.web.audit_words import ENDINGS, PHRASES, PLACEHOLDER

AREAS: dict[str, Promise] = {
    "access": _("access"),
    "apikey": _("API keys"),
    "audit": _("the audit log"),
    "audit_sink": _("destinations of the log"),
    "context": _("contexts"),
    "contract": _("contracts"),
    "conversation": _("conversations"),
    "form": _("caches and adapters"),
    "grant": _("grants"),
    "hold": _("legal holds"),
    "identity": _("identities"),
    "invitation": _("invitations"),
    "job": _("jobs"),
    "manifest": _("manifests"),
    "member": _("members"),
    "memory": _("memories"),
    "model_endpoint": _("language models"),
    "namespace": _("namespaces"),
    "operator": _("operators"),
    "pack": _("packs"),
    "pack_version": _("versions of packs"),
    "password": _("passwords"),
    "persona": _("personas"),
    "pii": _("personal data"),
    "pipeline": _("pipelines"),
    "policy": _("policies"),
    "proposal": _("proposals"),
    "provenance": _("provenance"),
    "publication": _("publications"),
    "quota": _("quotas"),
    "recovery_code": _("recovery codes"),
    "recovery_codes": _("recovery codes"),
    "reply": _("stored answers"),
    "retention": _("retention"),
    "review": _("reviews"),
    "schedule": _("schedules"),
    "second_factor": _("second factors"),
    "segment": _("segments"),
    "session": _("sessions"),
    "sign_in": _("sign-in"),
    "sign_in_link": _("sign-in links"),
    "sign_in_rules": _("sign-in rules"),
    "subject": _("data subjects"),
    "subscription": _("subscriptions"),
    "sync_peer": _("peers of syncs"),
    "template": _("presets"),
    "tenant": _("the organisation"),
    "turn": _("turns of conversations"),
    "upload": _("uploaded files"),
    "view": _("saved views"),
    "webhook": _("webhooks"),
    "work": _("background work"),
}
OUTCOMES: dict[str, Promise] = {Outcome.DONE: _("done"), Outcome.DENIED: _("refused")}


def verb_words(verb: str) -> str:
    """Return a verb as a phrase without its object's name, as in "Deleted memories"; of another release, its code.

    `memory.*`, which stands for all verbs of an area, is the area's name.
    """
    area, _dot, ending = verb.rpartition(".")
    about = str(AREAS.get(area, area.replace("_", " ")))
    if ending == "*":
        return capfirst(about)
    phrase = PHRASES.get(verb) or ENDINGS.get(ending)
    return capfirst(PLACEHOLDER.sub(lambda part: about if part[1] == "what" else "…", str(phrase))) if phrase else verb


def verb_groups(verbs: Iterable[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return verbs and their words by what they are about, as Django's `choices` with groups, sorted by words."""
    by_area = groupby(sorted(map(str, verbs)), key=lambda verb: verb.partition(".")[0])
    groups = [
        (verb_words(f"{area}.*"), sorted(((verb, verb_words(verb)) for verb in found), key=_label))
        for area, found in by_area
    ]
    return sorted(groups)


def _label(choice: tuple[str, str]) -> str:
    return choice[1]
