"""Tests of static files: vendored as published, and nothing inline or from elsewhere."""

import base64
import hashlib
import json
import re
from pathlib import Path

from django.conf import settings

from tests.harness.cases import each_case

ROOT = Path(settings.BASE_DIR)
VENDOR = ROOT / "static" / "vendor"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
OWN = [*TEMPLATES, *(ROOT / "static" / "js").glob("*.js"), *(ROOT / "static" / "css").glob("*.css")]

# An address with a host, but for the vendored font an address in a style, and whatever makes a document of a text.
ELSEWHERE = re.compile(
    r"""(?:src|href)="(?:https?:)?//|url\((?!"\.\./vendor/)|@import|innerHTML\s*=|insertAdjacentHTML|eval\("""
)


def test_vendored_files_are_what_the_manifest_says() -> None:
    manifest = json.loads((VENDOR / "manifest.json").read_text(encoding="utf-8"))
    wanted = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert {entry["package"]: entry["version"] for entry in manifest.values()} == wanted
    for name, entry in manifest.items():
        content = (VENDOR / name).read_bytes()
        digest = base64.b64encode(hashlib.sha384(content).digest()).decode()
        assert entry["integrity"] == f"sha384-{digest}"
        assert b"sourceMappingURL" not in content


def test_the_lock_names_no_place_to_download_from() -> None:
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    packages = [entry for path, entry in lock["packages"].items() if path]
    assert all(entry["integrity"].startswith("sha512-") for entry in packages)
    assert not any("resolved" in entry for entry in packages)


@each_case("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_template_has_nothing_inline(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|hx-on|<script(?![^>]*\ssrc=)", text)
    assert "|safe" not in text
    assert "autoescape off" not in text


@each_case("path", OWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_of_ours_comes_from_elsewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not ELSEWHERE.search(text)


@each_case("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_partial_names_its_context_first(path: Path) -> None:
    if path.name.startswith("_"):
        assert path.read_text(encoding="utf-8").startswith("{# ")
