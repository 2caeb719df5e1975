"""The first page: counts, use, open items and recent activity."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.audit.reading.activity import activity_list
from governance.database import acting
from governance.jobs.selectors import jobs_undoable
from governance.vocabulary import Measure, Permission
from governance.web.charts import chart_of
from governance.web.job_words import kind_words, result_words
from governance.web.navigation import address_of
from governance.web.pages import draw, safe_page
from governance.web.undo import MOST_DEEDS, list_deeds
from vault.listing.queries import MemoryQuery
from vault.listing.selectors import memories_page
from vault.overview.attention import Attention, Waiting, attention_list
from vault.overview.selectors import Overview, overview_get
from vault.vocabulary import Counted, Layer, State
from vault.web.activity_words import activity_lines
from vault.web.labels import LAYERS, SEMANTIC_TYPES, STATES
from vault.web.overview_tiles import make_tiles

PERIODS = (7, 30, 90)
LINES, LOOKED_AT = 8, 60  # lines of recent activity, and audit entries joined into them
MOST_BANDS = 7
GROUPS: dict[Counted, Promise] = {
    Counted.LAYER: gettext_lazy("Layer"),
    Counted.STATE: gettext_lazy("State"),
    Counted.SEMANTIC_TYPE: gettext_lazy("Type"),
}
TITLES: dict[Counted, Promise] = {
    Counted.LAYER: gettext_lazy("Memories by layer"),
    Counted.STATE: gettext_lazy("Memories by state"),
    Counted.SEMANTIC_TYPE: gettext_lazy("Memories by type"),
}
LABELS: Mapping[Counted, Mapping[str, Promise]] = {
    Counted.LAYER: {**{str(layer): LAYERS[layer] for layer in Layer}, State.ARCHIVED: gettext_lazy("archive")},
    Counted.STATE: {str(state): words for state, words in STATES.items()},
    Counted.SEMANTIC_TYPE: {str(semantic_type): words for semantic_type, words in SEMANTIC_TYPES.items()},
}
FILLS = {
    Layer.LONG_TERM: "fill-long",
    Layer.MID_TERM: "fill-mid",
    State.ARCHIVED: "fill-cold",
    Layer.SHORT_TERM: "fill-short",
}
OTHER_FILLS = ("fill-long", "fill-mid", "fill-short", "fill-ok", "fill-warn", "fill-bad", "fill-cold")


@dataclass(frozen=True)
class Line:
    """An open item as a line, with a link to the page that solves it."""

    icon: str
    tone: str
    title: str
    note: str
    button: str
    address: str


@safe_page
def overview(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    authorize(actor, Permission.MEMORY_READ)
    days = _read_days(request)
    group = next((counted for counted in GROUPS if counted == request.GET.get("group")), Counted.LAYER)
    may_audit = is_allowed(actor, Permission.AUDIT_READ)
    with acting(actor):
        found = overview_get(actor=actor, days=days, group=group)
        is_empty = not found.memories and not memories_page(actor=actor, query=MemoryQuery(), size=1).views
        waiting = attention_list(actor=actor, overview=found)
        done = activity_list(actor=actor, most=LOOKED_AT)
        context = {
            "overview": found,
            "tiles": make_tiles(found, waiting),
            "waiting": [line for item in waiting if (line := make_line(item, found))],
            "deeds": _list_deeds(request, actor),
            "activity": activity_lines(done, may_audit=may_audit, most=LINES),
            "may_audit": may_audit,
            "may_add": is_allowed(actor, Permission.MEMORY_CREATE),
            "may_chat": is_allowed(actor, Permission.CONVERSATION_USE),
            "may_operate": is_allowed(actor, Permission.OPERATIONS_MANAGE),
            "may_store": is_allowed(actor, Permission.STORE_MANAGE),
            "is_empty": is_empty,
            "days": days,
            "periods": PERIODS,
            "group": group,
            "groups": GROUPS,
            "title": TITLES[group],
            **_make_chart(found, group),
        }
        return draw(request, "vault/overview/overview.html", context)


def _list_deeds(request: HttpRequest, actor: Actor) -> list[dict[str, Any]]:
    """Return what the reader did and can undo: the deeds of this browser, and jobs; newest first."""
    deeds = list_deeds(request)
    if is_allowed(actor, Permission.JOB_READ):
        deeds += [
            {
                "moment": job.created_at,
                "words": " · ".join(filter(None, (kind_words(job.kind), result_words(job)))),
                "address": reverse("job_undo", args=[job.id]),
            }
            for job in jobs_undoable(actor=actor, most=MOST_DEEDS)
        ]
    return sorted(deeds, key=lambda deed: deed["moment"], reverse=True)


def _read_days(request: HttpRequest) -> int:
    asked = request.GET.get("days", "")
    return int(asked) if asked in map(str, PERIODS) else 30


def _make_chart(found: Overview, group: Counted) -> dict[str, Any]:
    """Return the chart and its key: each value with its class, label and present count."""
    values = list(found.series)
    if group is Counted.LAYER:
        values.sort(key=lambda value: list(FILLS).index(value))  # type: ignore[arg-type]
    else:
        values.sort(key=lambda value: -found.series[value][-1])
    shown = values[:MOST_BANDS]
    fills = [FILLS[value] if group is Counted.LAYER else OTHER_FILLS[at] for at, value in enumerate(shown)]  # type: ignore[index]
    return {
        "chart": chart_of([(fill, found.series[value]) for fill, value in zip(fills, shown, strict=True)]),
        "keys": [
            (fill, LABELS[group][value], found.series[value][-1], _list_address(group, value))
            for fill, value in zip(fills, shown, strict=True)
        ],
        "begin": date_format(found.days[0], "MONTH_DAY_FORMAT"),
        "end": date_format(found.days[-1], "MONTH_DAY_FORMAT"),
    }


def _list_address(group: Counted, value: str) -> str:
    name = Counted.STATE if value == State.ARCHIVED else group
    return f"{reverse('memories')}?{name}={value}"


def make_line(item: Attention, found: Overview) -> Line | None:
    """Return the line of an open item; None if this installation has no page for it."""
    n = {"n": item.count_text}
    lines = {
        Waiting.AUDIT: lambda: Line(
            "alert-circle", "bad", _("The audit log does not match its seals"),
            _("The first fault is at entry %(n)s") % n, _("Verify"), reverse("audit_verify"),
        ),
        Waiting.FAILED_JOBS: lambda: Line(
            "alert-circle", "bad", ngettext("%(n)s job failed", "%(n)s jobs failed", item.count) % n,
            _("Failed jobs can be run again for 7 days"), _("Look"), f"{address_of('jobs')}?list=all&state=failed",
        ),
        Waiting.QUOTA: lambda: Line(
            "database", "warn", _("A quota is used to %(n)s %%") % n, _describe_measure(item.about), _("Look"),
            address_of("quotas"),
        ),
        Waiting.REVIEWS: lambda: Line(
            "inbox", "warn", ngettext("%(n)s review waits", "%(n)s reviews wait", item.count) % n,
            _("Accept or reject each"), _("Review"), reverse("reviews"),
        ),
        Waiting.EXPIRING: lambda: Line(
            "hourglass", "warn",
            ngettext("%(n)s memory expires in 7 days", "%(n)s memories expire in 7 days", item.count) % n,
            _describe_busiest_day(found), _("Check"), f"{reverse('memories')}?order=expiring",
        ),
        Waiting.UNUSED_KEYS: lambda: Line(
            "key", "muted", ngettext("%(n)s API key is unused", "%(n)s API keys are unused", item.count) % n,
            _("No use in 90 days"), _("Look"), reverse("keys"),
        ),
        Waiting.PACK_APPROVALS: lambda: Line(
            "inbox", "warn", ngettext("%(n)s pack waits for approval", "%(n)s packs wait for approval", item.count) % n,
            _("Another member offered a version"), _("Review"), reverse("reviews"),
        ),
        Waiting.PACK_UPDATES: lambda: Line(
            "git-compare", "muted", ngettext("%(n)s pack has an update", "%(n)s packs have updates", item.count) % n,
            _("Compare the versions first"), _("Look"), reverse("store_installed"),
        ),
        Waiting.PACK_ENDS: lambda: Line(
            "hourglass", "warn",
            ngettext("%(n)s contract of a pack ends", "%(n)s contracts of packs end", item.count) % n,
            _("Within 7 days, or in the last 7"), _("Look"), reverse("store_installed"),
        ),
    }  # fmt: skip
    line = lines[item.kind]()
    return line if line.address else None


def _describe_measure(measure: str) -> str:
    words = {
        Measure.MEMORIES: _("Memories of the organisation"),
        Measure.BYTES: _("Storage of the organisation"),
        Measure.MODEL_TOKENS: _("Model tokens of this month"),
    }
    return words[Measure(measure)]


def _describe_busiest_day(found: Overview) -> str:
    day, count = max(found.expiring.items(), key=lambda pair: pair[1])
    return _("%(n)s of them on %(day)s") % {"n": f"{count:,}", "day": date_format(day, "MONTH_DAY_FORMAT")}
