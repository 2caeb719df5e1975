"""The documents name real things: links, settings, commands, files, tests, dependencies."""

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

from django.core.management import get_commands

from memos_web.config import KNOWN_VARIABLES, OF_CLIENTS, OF_ENGINE
from tests.harness.cases import each_case
from tests.harness.servers import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
OTHERS = [
    *(ROOT / name for name in ("docker-compose.yml", "Dockerfile", "Makefile")),
    *ROOT.glob("templates/**/*.html"),
]
ADDRESSES = {
    "DATABASE_URL", "DATABASE_DIRECT_URL", "DATABASE_READ_URL", "DATABASE_OWNER_URL", "DATABASE_BACKUP_URL",
    "DATABASE_RESTORE_URL", "REDIS_URL",
}  # fmt: skip
README = ROOT / "README.md"
HOUSES = "memos_web|vault|governance|deploy|scripts|requirements|templates|static|tests|benchmarks"

each_document = each_case("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def anchors(text: str) -> set[str]:
    """The addresses of a document's headings."""
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@each_document
def test_every_relative_link_leads_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8"))
    for link in links:
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


@each_case("path", [*DOCUMENTS, *OTHERS], ids=lambda path: str(path.relative_to(ROOT)))
def test_every_setting_that_is_named_is_read(path: Path) -> None:
    named = set(re.findall(r"\bMEMOS_[A-Z_]+[A-Z]\b", path.read_text(encoding="utf-8")))
    assert named <= KNOWN_VARIABLES | OF_CLIENTS | OF_ENGINE


def test_the_engine_reads_the_settings_that_the_product_ignores() -> None:
    source = (ROOT / "engine" / "memos_engine" / "settings.py").read_text(encoding="utf-8")
    assert set(re.findall(r'"(MEMOS_ENGINE_[A-Z_]+)"', source)) == OF_ENGINE


def test_the_readme_lists_every_setting() -> None:
    listed = set(re.findall(r"^\| `([A-Z_]+)` \|", README.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert listed == KNOWN_VARIABLES | ADDRESSES


@each_document
def test_every_command_that_is_named_exists(path: Path) -> None:
    named = set(re.findall(r"manage\.py ([a-z_]+)", path.read_text(encoding="utf-8")))
    assert named <= set(get_commands())


def test_the_readme_lists_every_command_of_ours() -> None:
    listed = set(re.findall(r"^\| `([a-z_]+)[ `]", README.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert listed == our_commands()


def test_the_changelog_names_every_command_of_ours() -> None:
    named = set(re.findall(r"`([a-z_]+)`", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))
    assert our_commands() <= named


def our_commands() -> set[str]:
    return {name for name, app in get_commands().items() if app in {"memos_web", "vault", "governance"}}


@each_document
def test_a_data_directory_that_is_named_is_not_taken_into_the_repository(path: Path) -> None:
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    for folder in re.findall(r"MEMOS_DATA_DIR=([a-z-]+)", path.read_text(encoding="utf-8")):
        assert any(fnmatch(f"{folder}/", pattern) for pattern in ignored)


@each_document
def test_every_make_target_that_is_named_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert named <= targets


@each_document
def test_every_file_and_test_that_is_named_exists(path: Path) -> None:
    named = re.findall(rf"`((?:{HOUSES})/[\w./-]*)(?:::(\w+))?`", path.read_text(encoding="utf-8"))
    for file, test in named:
        assert (ROOT / file).exists(), file
        if test:
            assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"


def test_every_direct_dependency_has_its_line_and_no_other_has() -> None:
    file = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    engine = tomllib.loads((ROOT / "engine" / "pyproject.toml").read_text(encoding="utf-8"))
    groups = engine["dependency-groups"].values()
    required = [
        requirement
        for project in (file["project"], engine["project"])
        for extra in [project["dependencies"], *project["optional-dependencies"].values(), *groups]
        for requirement in extra
    ]
    direct = {re.split(r"[\[=<>~; ]", requirement)[0].lower() for requirement in required}
    lines = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| ([a-z][\w-]*) \|", lines, flags=re.MULTILINE)
    assert sorted(name for name in listed if name != "package") == sorted(direct)


def test_decisions_have_numbers_of_their_own_and_say_what_was_not_chosen() -> None:
    notes = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert len({note.name[:5] for note in notes}) == len(notes)
    for note in notes:
        text = note.read_text(encoding="utf-8")
        assert text.startswith(f"# {note.name[:4]}: "), note.name
        for part in ("**Decided.**", "**Why.**", "**Price.**", "**Not chosen.**"):
            assert part in text, f"{note.name} lacks {part}"


def test_what_the_code_calls_a_decision_is_one() -> None:
    for path in [*ROOT.glob("governance/*.py"), *ROOT.glob("vault/**/*.py"), *ROOT.glob("memos_web/**/*.py")]:
        for number in re.findall(r"docs/decisions/(\d{4})", path.read_text(encoding="utf-8")):
            assert list((ROOT / "docs" / "decisions").glob(f"{number}-*.md")), f"{path.name} names {number}"
