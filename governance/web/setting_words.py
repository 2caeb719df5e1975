"""Words for the settings of scheduled jobs: labels, hints, and names of choices."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.vocabulary import Topic

LABELS: dict[str, Promise] = {
    "archive": _("Archive forgotten memories"),
    "automatic": _("Caches that the product may make by itself"),
    "days": _("Days without use or change"),
    "filters": _("Filters"),
    "forgetting": _("Forgetting policy"),
    "format": _("Format"),
    "idle_days": _("Days without use before text is proposed again"),
    "importance": _("Raise the importance of memories that are used"),
    "keep": _("Exports to keep"),
    "limit": _("Archive below this score"),
    "max_heat": _("Heat at most"),
    "most": _("Memories of one run at most"),
    "namespace": _("Namespace"),
    "on": _("Runs also after"),
    "peer": _("Id of the other installation"),
    "persona": _("Persona"),
    "pipeline": _("Pipeline"),
    "purge": _("Erase memories after the grace period"),
    "repair": _("Repair what is found"),
    "sentences": _("Sentences of a summary at most"),
    "share": _("Share of the turns a memory must enter"),
    "stable_days": _("Days without a change"),
    "threshold": _("Least similarity"),
    "to": _("Move to"),
    "turns": _("Turns that are read"),
    "uses": _("Uses of a cache before an adapter is proposed"),
    "uses_model": _("Choose sentences with a language model"),
    "youngest_days": _("Never archive memories younger than so many days"),
}
HINTS: dict[str, Promise] = {
    "filters": _("One in each line, as in verb=memory.deleted. Empty: all entries."),
    "forgetting": _("The keep score weighs age, importance, use and priority."),
    "limit": _("Empty: the limit of the forgetting policy."),
    "namespace": _("A path, with all below it. Empty: every namespace."),
    "persona": _("Its name or id. Empty: every persona."),
    "threshold": _("Cosine similarity of two memories: 1 means the same."),
}
CHOICES: dict[tuple[str, str], dict[str, Promise]] = {
    (Topic.AUDIT_EXPORT, "format"): {"jsonl": _("JSON Lines"), "csv": _("CSV")},
    (Topic.LIFECYCLE_SWEEP, "forgetting"): {
        "keep": _("Keep score"),
        "lru": _("Least recently used"),
        "heat": _("Heat"),
    },
    (Topic.MEMORIES_EXPORT, "on"): {
        "": _("Nothing else"),
        "pack": _("A pack was built"),
        "namespace": _("A namespace was moved or restored"),
    },
    (Topic.PIPELINE_RUN, "on"): {
        "": _("Nothing else"),
        "import": _("An import has ended"),
        "pack": _("A pack was built"),
        "namespace": _("A namespace was moved or restored"),
    },
    (Topic.TIERS_APPLY, "to"): {"cold": _("Cold storage"), "archive": _("The archive")},
}
