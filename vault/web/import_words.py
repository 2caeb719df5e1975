"""Texts about imports: formats, reasons for skipped parts of a file, and sentences about the results."""

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from governance.jobs.selectors import JobView
from vault.vocabulary import ImportFormat

FORMATS: dict[ImportFormat, Promise] = {
    ImportFormat.JSONL: gettext_lazy("JSON Lines from MemOS Web"),
    ImportFormat.CSV: gettext_lazy("CSV table"),
    ImportFormat.MARKDOWN: gettext_lazy("Markdown: one file, or a zip of a folder"),
    ImportFormat.MEM0: gettext_lazy("mem0 export (JSON)"),
    ImportFormat.MEMPACK: gettext_lazy("Memory pack (.mempack)"),
    ImportFormat.MEMOS: gettext_lazy("MemOS cube: a zip of the folder, or textual_memory.json"),
    ImportFormat.MEMORYOS: gettext_lazy("MemoryOS: a zip of one user's data folder"),
    ImportFormat.LOCOMO: gettext_lazy("LoCoMo: a file of conversations (JSON)"),
    ImportFormat.CHATGPT: gettext_lazy("ChatGPT export: the zip, or conversations.json"),
    ImportFormat.CLAUDE: gettext_lazy("Claude export: the zip, or conversations.json"),
    ImportFormat.GEMINI: gettext_lazy("Gemini Takeout: the zip, or My Activity as JSON or HTML"),
    ImportFormat.OPENMEMORY: gettext_lazy("OpenMemory backup: the zip, or memories.json"),
    ImportFormat.MCP_MEMORY: gettext_lazy("MCP memory server: its graph (JSON Lines)"),
    ImportFormat.LETTA: gettext_lazy("Letta agent file (.af)"),
    ImportFormat.GRAPHITI: gettext_lazy("Graphiti or Zep: episodes, edges and nodes (JSON)"),
    ImportFormat.LANGGRAPH: gettext_lazy("LangGraph or LangMem store (JSON)"),
}
REASONS: dict[str, Promise] = {
    "forbidden": gettext_lazy("a memory here that you may not change"),
    "empty": gettext_lazy("no text"),
    "too_long": gettext_lazy("too long"),
    "bad_time": gettext_lazy("a date that cannot be read"),
    "bad_metadata": gettext_lazy("metadata that is too large or too deep"),
    "broken_text": gettext_lazy("characters that cannot be stored"),
    "malformed": gettext_lazy("not in the format"),
    "repeated": gettext_lazy("the same memory twice"),
    "deleted": gettext_lazy("deleted there"),
    "other_file": gettext_lazy("not a Markdown file"),
    "no_utf8": gettext_lazy("not UTF-8"),
    "archived": gettext_lazy("archived there"),
    "configuration": gettext_lazy("settings, which may hold secrets"),
    "not_text": gettext_lazy("a file without memories in text"),
    "says_nothing": gettext_lazy("says nothing, or that a model failed"),
    "assistant_knowledge": gettext_lazy("knowledge of the assistant, not of the person"),
    "other_branch": gettext_lazy("replaced later in the conversation"),
    "other_role": gettext_lazy("written by neither the person nor the assistant"),
    "beside": gettext_lazy("told about the conversation, not said in it"),
    "no_words": gettext_lazy("a picture or file without words"),
    "hidden": gettext_lazy("hidden in the conversation, not said by the person"),
    "reasoning": gettext_lazy("thoughts of the assistant"),
    "tool_call": gettext_lazy("an order of the assistant to a tool"),
    "do_not_remember": gettext_lazy("a conversation that is not to be remembered"),
    "account": gettext_lazy("data of the account"),
    "sample": gettext_lazy("a sample of the product"),
    "pii_refused": gettext_lazy("personal data, which a policy refuses"),
    "expires_at": gettext_lazy("an expiry that a rule refuses"),
    "adapter": gettext_lazy("an adapter, which comes only with a subscription to its pack"),
    "other_activity": gettext_lazy("another activity than a conversation"),
}
COUNTS: dict[str, Promise] = {
    "updated": gettext_lazy("%(n)s updated"),
    "present": gettext_lazy("%(n)s here already"),
    "of_packs": gettext_lazy("%(n)s left out, since the contract of a pack covers them"),
    "conflicts": gettext_lazy("%(n)s left as they are here, with other words"),
    "quarantined": gettext_lazy("%(n)s wait in the review inbox"),
    "held": gettext_lazy("%(n)s versions kept back by a hold"),
    "deleted": gettext_lazy("%(n)s in the trash here, left there"),
    "expired": gettext_lazy("%(n)s expired"),
    "personas_missing": gettext_lazy("%(n)s stored without their persona, which you may not make"),
    "pages": gettext_lazy("%(n)s pages of conversations"),
    "origins_missing": gettext_lazy("%(n)s origins were not in the file"),
}


def make_notes(view: JobView) -> list[str]:
    """Return sentences about the memories that an import stored and skipped, with reasons."""
    result: Mapping[str, Any] = view.result if isinstance(view.result, dict) else {}
    notes = make_count_notes(result.get("counts", {}))
    if result.get("signer"):
        notes.append(signer_words(result["signer"]))
    return notes + [
        _("%(n)s left out: %(reason)s") % {"n": count, "reason": reason_words(reason)}
        for reason, count in result.get("left_out", {}).items()
    ]


def make_count_notes(counts: Mapping[str, int]) -> list[str]:
    """Return sentences about the counts of an import."""
    notes, stored = [], counts.get("stored", 0)
    if stored:
        notes.append(ngettext("%(n)s memory stored", "%(n)s memories stored", stored) % {"n": stored})
    return notes + [str(words) % {"n": counts[name]} for name, words in COUNTS.items() if counts.get(name)]


def reason_words(reason: str) -> str:
    return str(REASONS.get(reason, reason))


def signer_words(signer: Mapping[str, Any]) -> str:
    """Return a sentence about the signer of a pack."""
    if signer["is_own"]:
        return _("Pack %(pack)s %(version)s, signed by this installation") % signer
    return (
        _("Pack %(pack)s %(version)s, signed with the key %(key_id)s, which this installation does not know") % signer
    )
