"""Sealed words are opened for a reader in one place, which asks the contract of a pack and counts the read.

Every other module that opens words is named here with the reason why it need not ask.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("vault",)
GATE = "vault/cubes/reader_words.py"
READERS = "gate"  # it opens words by `open_for_reader`
WRITTEN = "the words are written, not shown"
SYSTEM = "a job of the product reads them, and shows none"
OWN = "the publisher's own file"
OPENERS = frozenset(
    {
        "words_open",
        "open_words",
        "pages_open",
        "texts_of_version",
        "read_version_texts",
        "file_open",
        "open_for_reader",
        "preview_open",
        "trial_open",
    }
)
LISTED = {
    "vault/cubes/quotes.py": READERS,
    "vault/cubes/selectors.py": READERS,
    "vault/reviews/selectors.py": READERS,
    "vault/cubes/past.py": WRITTEN,
    "vault/cubes/redaction.py": WRITTEN,
    "vault/cubes/writer/builder.py": WRITTEN,
    "vault/cubes/writer/prepared_texts.py": WRITTEN,
    "vault/jobs/restoration.py": WRITTEN,
    "vault/reviews/services.py": WRITTEN,
    "vault/embeddings/vectors.py": SYSTEM,
    "vault/graph/jobs.py": SYSTEM,
    "vault/graph/neighbours.py": SYSTEM,
    "vault/conversion/unlearning.py": "the name goes on to the adapter that is trained in its place",
    "vault/layers/distillation.py": SYSTEM,
    "vault/layers/page_texts.py": SYSTEM,
    "vault/layers/placement.py": SYSTEM,
    "vault/lifecycle/index_check.py": SYSTEM,
    "vault/lifecycle/pairs.py": SYSTEM,
    "vault/lifecycle/summaries.py": "sentences are chosen by a job, and opened as quotes for each reader",
    "vault/store/comparison.py": SYSTEM,
    "vault/store/installation.py": SYSTEM,
    "vault/store/selections.py": SYSTEM,
    "vault/store/upgrades.py": "counts a read with `pack_read_require` before it compares",
    "vault/store/trials.py": "a bounded share, counted for each organisation",
    "vault/store/catalogue.py": "samples that the publisher shows to everybody",
    "vault/store/excerpts.py": "made of the verified file by a job, and shown by the two above",
    "vault/store/listings.py": SYSTEM,
    "vault/store/selectors.py": OWN,
    "vault/store/proposals.py": OWN,
    "vault/store/traces.py": OWN,
}


def opens_words(source: str) -> bool:
    """Return whether a module imports, names or calls what opens sealed words."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and any(alias.name in OPENERS for alias in node.names):
            return True
        if isinstance(node, ast.Attribute) and node.attr in OPENERS:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in OPENERS:
            return True
    return False


def test_every_module_that_opens_words_says_why() -> None:
    found = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if opens_words(path.read_text(encoding="utf-8"))
    }
    assert found - {GATE} == LISTED.keys()


@pytest.mark.parametrize("module", [module for module, reason in LISTED.items() if reason == READERS])
def test_module_of_readers_opens_in_no_other_way(module: str) -> None:
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert imported & OPENERS == {"open_for_reader"}


def test_upgrade_asks_before_it_opens() -> None:
    source = (ROOT / "vault/store/upgrades.py").read_text(encoding="utf-8")
    plan = source[source.index("def upgrade_plan") : source.index("def override_set")]
    assert 0 < plan.index("pack_read_require(") < plan.index("_read_published(")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from vault.content.words import words_open", True),
        ("from vault.content import words\nwords.words_open(blob=b'')", True),
        ("from vault.content.words import NO_WORDS", False),
    ],
)
def test_new_path_is_noticed(source: str, expected: bool) -> None:
    assert opens_words(source) is expected
