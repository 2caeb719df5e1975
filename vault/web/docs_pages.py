"""The pages of `/docs/`: the Markdown files of this repository, by their addresses.

A new file in `docs/` becomes a page at once, and appears in the navigation if SECTIONS lists it.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

ROOT = Path(settings.BASE_DIR)
FILES_ELSEWHERE = {
    "readme": "README.md",
    "threat-model": "THREAT_MODEL.md",
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
    "python-client": "clients/python/README.md",
    "typescript-client": "clients/typescript/README.md",
    "reference-agent": "examples/README.md",
    "rest-api": "vault/api/manual.md",
}
PICTURES = ROOT / "docs" / "screenshots"  # no page: its images are not served


@dataclass(frozen=True)
class Entry:
    """An entry of the navigation."""

    address: str
    title: Promise


@dataclass(frozen=True)
class Section:
    title: Promise
    entries: tuple[Entry, ...]


SECTIONS = (
    Section(
        _("Guides"),
        (
            Entry("guides/first-memory", _("First memory")),
            Entry("guides/chat", _("Chat")),
            Entry("guides/tenants-and-keys", _("Tenants and keys")),
            Entry("guides/policies", _("Set a policy")),
            Entry("guides/audit", _("Check the audit log")),
            Entry("guides/kernel", _("Caches and adapters")),
            Entry("mcp", _("Agents over MCP")),
            Entry("python-client", _("Python client")),
            Entry("typescript-client", _("TypeScript client")),
            Entry("frameworks", _("Agent frameworks")),
            Entry("reference-agent", _("Reference agent")),
            Entry("mem0", _("Move from mem0")),
            Entry("memos", _("Move from MemOS")),
            Entry("webhooks", _("Webhooks")),
            Entry("exchange", _("Import and export")),
            Entry("guides/packs", _("Share a pack")),
            Entry("store", _("Subscribe to a pack")),
        ),
    ),
    Section(
        _("Reference"),
        (
            Entry("rest-api", _("REST API")),
            Entry("policies", _("Policies and quotas")),
            Entry("audit", _("Audit log")),
            Entry("lifecycle", _("Lifecycle")),
            Entry("privacy", _("Personal data")),
            Entry("provenance", _("Provenance")),
            Entry("mempack", _("Pack format")),
            Entry("glossary", _("Glossary")),
        ),
    ),
    Section(
        _("Run a server"),
        (
            Entry("readme", _("Settings and commands")),
            Entry("production", _("Production")),
            Entry("scaling", _("Scaling")),
            Entry("operations", _("Operations")),
            Entry("metrics", _("Metrics")),
            Entry("threat-model", _("Threat model")),
            Entry("benchmarks", _("Benchmarks")),
        ),
    ),
    Section(
        _("Develop"),
        (
            Entry("architecture", _("Architecture")),
            Entry("dependencies", _("Dependencies")),
            Entry("contributing", _("Contributing")),
            Entry("changelog", _("Changelog")),
        ),
    ),
)


@cache
def page_files() -> dict[str, Path]:
    """Return the file of each page by address, such as `guides/chat`."""
    files = {address: ROOT / name for address, name in FILES_ELSEWHERE.items()}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if not path.is_relative_to(PICTURES):
            files[path.relative_to(ROOT / "docs").with_suffix("").as_posix()] = path
    return files


@cache
def page_addresses() -> dict[Path, str]:
    """Return the address of each page by file."""
    return {path.resolve(): address for address, path in page_files().items()}


def neighbours(address: str) -> tuple[Entry | None, Entry | None]:
    """Return the entries before and after a page in its section; None at the ends and for a page outside of
    sections."""
    for section in SECTIONS:
        entries = (None, *section.entries, None)
        for before, entry, after in zip(entries, section.entries, entries[2:], strict=False):
            if entry.address == address:
                return before, after
    return None, None


def find_title(address: str) -> Promise | str:
    """Return the title of a page in the navigation; its address if no section lists it."""
    titles = {entry.address: entry.title for section in SECTIONS for entry in section.entries}
    return titles.get(address, address)
