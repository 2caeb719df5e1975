"""Words for jobs: kind, state, duration, and times of schedules."""

from collections.abc import Mapping
from datetime import timedelta

from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from governance.errors import DomainError
from governance.heartbeats import Part
from governance.jobs.kinds import Preview
from governance.jobs.selectors import OPEN, JobView
from governance.vocabulary import JobStatus, Topic
from governance.web.explanations import EXPLANATIONS

KINDS: dict[str, Promise] = {
    Topic.MEMORIES_ADD: _("Add memories"),
    Topic.CUBES_REEMBED: _("Move to another embedding model"),
    Topic.VECTORS_MOVE: _("Move to another vector index"),
    Topic.MEMORIES_ACT: _("Change memories"),
    Topic.MEMORIES_ACT_UNDO: _("Undo a change of memories"),
    Topic.MEMORIES_IMPORT_UNDO: _("Undo an import"),
    Topic.MEMORIES_EXPORT: _("Export memories"),
    Topic.MEMORIES_IMPORT: _("Import memories"),
    Topic.MEMORIES_SYNC: _("Sync with another installation"),
    Topic.AUDIT_EXPORT: _("Export the audit log"),
    Topic.SUBJECT_EXPORT: _("Export all about a data subject"),
    Topic.SUBJECT_ERASE: _("Erase all about a data subject"),
    Topic.TENANT_ERASE: _("Delete the organisation"),
    Topic.RETENTION_APPLY: _("Apply retention policies"),
    Topic.NAMESPACE_RESTORE: _("Restore a namespace"),
    Topic.SESSION_END: _("End a session"),
    Topic.WRITER_QUARANTINE: _("Quarantine a writer's memories"),
    Topic.TIERS_APPLY: _("Apply storage tiers"),
    Topic.NAMESPACE_MOVE: _("Move a namespace"),
    Topic.LIFECYCLE_SWEEP: _("Sweep memories"),
    Topic.INDEX_CHECK: _("Check the index and the versions"),
    Topic.PACK_BUILD: _("Build a pack"),
    Topic.PACK_INSTALL: _("Install or remove a pack"),
    Topic.PACK_COMPARE: _("Compare a pack with own memories"),
    Topic.FUSIONS_PROPOSE: _("Propose fusions of duplicates"),
    Topic.CONFLICTS_PROPOSE: _("Ask about contradictions"),
    Topic.BEHAVIOUR_UPDATE: _("Update heat and importance"),
    Topic.SUMMARIES_WRITE: _("Write summaries"),
    Topic.PIPELINE_RUN: _("Run a pipeline"),
    Topic.FORM_BUILD: _("Make a cache or an adapter"),
    Topic.FORM_PROPOSE: _("Propose caches and adapters"),
}
MEANINGS: dict[str, Promise] = {
    Topic.FORM_PROPOSE: _(
        "Proposes caches and adapters of memories that prompts often have, and makes the best cache."
    ),
    Topic.MEMORIES_EXPORT: _("Notes memories for a download, and keeps the last exports."),
    Topic.MEMORIES_SYNC: _("Keeps a namespace here and one of another installation the same."),
    Topic.AUDIT_EXPORT: _("Writes the audit log into a signed file to download."),
    Topic.RETENTION_APPLY: _("Sets the expiry of memories as the retention policies say."),
    Topic.TIERS_APPLY: _("Moves memories that nobody has used for long to cheaper storage."),
    Topic.LIFECYCLE_SWEEP: _("Expires, archives and removes memories that are due."),
    Topic.INDEX_CHECK: _("Finds memories that the search index lacks, and repairs their entries."),
    Topic.FUSIONS_PROPOSE: _("Proposes fusions of memories that say the same, or nearly."),
    Topic.CONFLICTS_PROPOSE: _("Asks which one holds of two memories that contradict each other."),
    Topic.SUMMARIES_WRITE: _("Sums up namespaces and conversations that changed since their last summary."),
    Topic.PIPELINE_RUN: _("Runs the steps of one of your pipelines as one: all or none."),
    Topic.BEHAVIOUR_UPDATE: _("Computes heat and importance of memories from how often they were used."),
}
# "A run now would …": the effects of kinds that do not change memories.
EFFECTS: dict[str, Promise] = {
    Topic.AUDIT_EXPORT: ngettext_lazy("export %(n)s entry", "export %(n)s entries", "n"),
    Topic.MEMORIES_EXPORT: ngettext_lazy("export %(n)s memory", "export %(n)s memories", "n"),
    Topic.INDEX_CHECK: ngettext_lazy("find faults of %(n)s memory", "find faults of %(n)s memories", "n"),
    Topic.FUSIONS_PROPOSE: ngettext_lazy("propose %(n)s fusion", "propose %(n)s fusions", "n"),
    Topic.CONFLICTS_PROPOSE: ngettext_lazy("ask about %(n)s contradiction", "ask about %(n)s contradictions", "n"),
    Topic.FORM_PROPOSE: ngettext_lazy("read the prompts of %(n)s persona", "read the prompts of %(n)s personas", "n"),
    Topic.SUMMARIES_WRITE: ngettext_lazy("write %(n)s summary", "write %(n)s summaries", "n"),
    Topic.RETENTION_APPLY: ngettext_lazy("set the expiry of %(n)s memory", "set the expiry of %(n)s memories", "n"),
    Topic.TIERS_APPLY: ngettext_lazy("move %(n)s memory", "move %(n)s memories", "n"),
}
EFFECT: Promise = ngettext_lazy("change %(n)s memory", "change %(n)s memories", "n")
PARTS_OF_EFFECTS: dict[str, Promise] = {
    "expired": ngettext_lazy("mark %(n)s memory as expired", "mark %(n)s memories as expired", "n"),
    "archived": ngettext_lazy("archive %(n)s memory", "archive %(n)s memories", "n"),
    "purged": ngettext_lazy("erase %(n)s memory", "erase %(n)s memories", "n"),
}
DONE_PARTS: dict[str, Promise] = {
    "expired": _("%(n)s expired"),
    "archived": _("%(n)s archived"),
    "purged": _("%(n)s erased"),
}
CHANGED = ("changed", "quarantined", "deleted")  # names of counts of memories in a result
STATUSES: dict[JobStatus, tuple[str, Promise]] = {
    JobStatus.PENDING: ("waiting", _("Waiting")),
    JobStatus.RUNNING: ("running", _("Running")),
    JobStatus.CANCELLING: ("waiting", _("Cancelling")),
    JobStatus.CANCELLED: ("archived", _("Cancelled")),
    JobStatus.SUCCEEDED: ("activated", _("Done")),
    JobStatus.FAILED: ("failed", _("Failed")),
}
PARTS: dict[Part, Promise] = {
    Part.DISPATCHER: _("Dispatcher"),
    Part.SEALER: _("Sealer"),
    Part.BEAT: _("Scheduler"),
    Part.WORKER: _("Worker"),
    Part.WORKER_HEAVY: _("Worker for long jobs"),
}
EXHAUSTED: dict[str, Promise] = {
    "time_limit": _("Every attempt took too long. Nothing is lost: retry once the cause is gone."),
    "items_parked": _("Some memories could not be changed in any attempt. Retry once the cause is gone."),
    "unavailable": _("A service did not answer in any attempt. Nothing is lost: retry once it does."),
}
WEEKDAYS = (
    _("Sundays"),
    _("Mondays"),
    _("Tuesdays"),
    _("Wednesdays"),
    _("Thursdays"),
    _("Fridays"),
    _("Saturdays"),
)


def kind_words(kind: str) -> str:
    """Return the name of a kind of job; its code if it has no name."""
    return str(KINDS.get(kind, kind))


def meaning_words(kind: str) -> str:
    """Return a sentence about a scheduled run of the kind; empty for a kind of a former release."""
    return str(MEANINGS.get(kind, ""))


def effect_words(kind: str, preview: Preview) -> str:
    """Return the effect of a run, as `archive 5 memories, erase 2 memories`."""
    parts = [(PARTS_OF_EFFECTS[name], count) for name, count in sorted(preview.counts.items()) if count]
    words = parts or [(EFFECTS.get(kind, EFFECT), preview.count)]
    return gettext(", ").join(words % {"n": count} for words, count in words)


def progress_words(view: JobView) -> str:
    """Return how far a job is: of one that trains an adapter, the training and then the examination."""
    done, total = view.done, view.total or 0
    if view.kind == Topic.FORM_BUILD and view.status in OPEN and total > 1:
        steps = total // 2
        if done >= steps:
            return gettext("examining")
        return gettext("training: %(done)s of %(total)s") % {"done": done, "total": steps}
    return gettext("%(done)s of %(total)s") % {"done": done, "total": total}


def result_words(view: JobView) -> str:
    """Return a sentence about the result of a job, if the result has counts."""
    result = view.result if isinstance(view.result, Mapping) else {}
    if isinstance(result.get("memory_ids"), list):
        count = len(result["memory_ids"])
        return ngettext("%(n)s memory", "%(n)s memories", count) % {"n": count}
    changed = next((result[name] for name in CHANGED if isinstance(result.get(name), int)), None)
    if changed is not None:
        left = sum(count for _code, count in left_codes(view))
        parts = [str(words) % {"n": result[name]} for name, words in DONE_PARTS.items() if result.get(name)]
        every = ngettext("%(n)s memory", "%(n)s memories", changed) % {"n": changed}
        words = gettext(", ").join(parts) or every
        return words + (gettext(", %(left)s left out") % {"left": left} if left else "")
    if isinstance(result.get("stored"), int):
        return ngettext("%(n)s memory", "%(n)s memories", result["stored"]) % {"n": result["stored"]}
    if isinstance(result.get("proposed"), int):
        return ngettext("%(n)s proposal", "%(n)s proposals", result["proposed"]) % {"n": result["proposed"]}
    if isinstance(result.get("rows"), int):
        return ngettext("%(n)s entry", "%(n)s entries", result["rows"]) % {"n": result["rows"]}
    return ""


def left_codes(view: JobView) -> list[tuple[str, int]]:
    """Return the reasons, as codes, for which a job left memories unchanged, with their numbers."""
    result = view.result if isinstance(view.result, Mapping) else {}
    held = result.get("held")
    return [*result.get("codes", {}).items(), *([("held", held)] if isinstance(held, int) and held else [])]


def error_words(view: JobView) -> str:
    """Return the reason of a job's failure, in one or two sentences."""
    if view.error is None:
        return ""
    code = view.error.get("code", "")
    if view.dead_letter and code in EXHAUSTED:
        return str(EXHAUSTED[code])
    explained = EXPLANATIONS.get(code, EXPLANATIONS[DomainError.code])
    return str(explained.title)


def reason_words(code: str) -> str:
    """Return the reason why a job skipped a memory; an unknown reason as its code."""
    explained = EXPLANATIONS.get(code)
    return str(explained.title) if explained else code


def duration_words(time: timedelta) -> str:
    """Return a duration as text, such as `2 min 10 s`; below a second in tenths."""
    seconds = time.total_seconds()
    if seconds < 1:
        return gettext("%(seconds)s s") % {"seconds": f"{max(seconds, 0):.1f}"}
    minutes, rest = divmod(int(seconds), 60)
    if not minutes:
        return gettext("%(seconds)s s") % {"seconds": rest}
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return gettext("%(minutes)s min %(seconds)s s") % {"minutes": minutes, "seconds": rest}
    return gettext("%(hours)s h %(minutes)s min") % {"hours": hours, "minutes": minutes}


def cron_words(cron: str) -> str:
    """Return the times of a cron expression in words; the expression itself if the words would be too long."""
    parts = cron.split()
    if len(parts) != 5 or parts[3] != "*":
        return cron
    minute, hour, day, _month, weekday = parts
    if hour == day == weekday == "*":
        return _describe_minute(minute) or cron
    if not minute.isdigit() or not hour.isdigit():
        return cron
    return _describe_day(f"{int(hour):02}:{int(minute):02}", day, weekday) or cron


def _describe_minute(minute: str) -> str:
    if minute.startswith("*/") and minute[2:].isdigit():
        return gettext("Every %(number)s min") % {"number": minute[2:]}
    if minute == "0":
        return gettext("Every hour")
    return gettext("Every hour, %(number)s min past") % {"number": minute} if minute.isdigit() else ""


def _describe_day(time: str, day: str, weekday: str) -> str:
    if day == weekday == "*":
        return gettext("Daily at %(time)s") % {"time": time}
    if day == "*" and weekday.isdigit() and int(weekday) < 7:
        return gettext("%(weekday)s at %(time)s") % {"weekday": WEEKDAYS[int(weekday)], "time": time}
    if weekday == "*" and day.isdigit():
        return gettext("Monthly on day %(day)s at %(time)s") % {"day": day, "time": time}
    return ""
