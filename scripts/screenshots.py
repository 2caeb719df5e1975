"""Take the pictures of docs/screenshots/: every page of the demo, light and dark, on a desktop and on a phone.

Starts an installation of its own in a temporary folder, fills it with the demo, and ends it. Needs Chromium.
"""

import argparse
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import BrowserContext, Page, ViewportSize, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "screenshots"
COUNTED_SECONDS, NOT_COUNTED = 300.0, "Nothing is counted yet"
START_SECONDS, SETTLE_SECONDS = 180, 120
MOST_BYTES, LEAST_QUALITY = 60_000, 20  # of a picture
SIZES: dict[str, ViewportSize] = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}
THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
SHOWN = "theme => (document.documentElement.dataset.bsTheme ?? theme) === theme"  # /admin/ follows the system alone
CONTENT = "Tide blue is our best-selling glaze"
# Pages by their addresses; one that is not there (404) is left out. {name} is a row that `rows_find` looks up.
PAGES = {
    "memories": "/memories/",
    "memories-reader": "/memories/?selected={memory}",
    "memories-search": "/memories/?q=kiln+insurance",
    "memories-chinese": "/memories/?q=%E9%87%89+%E9%85%8D%E6%96%B9",
    "memories-filtered": "/memories/?namespace=%2Fteam%2Fkiln",
    "memories-deleted": "/memories/?deleted=true",
    "playground": "/memories/playground/?q=kiln+insurance",
    "memory": "/memories/{memory}/",
    "memory-edit": "/memories/{memory}/edit/",
    "memory-readers": "/memories/{memory}/readers/",
    "memory-provenance": "/memories/{memory}/provenance/",
    "memory-split": "/memories/{memory}/split/",
    "memories-nearest": "/memories/?q=Zebulon",
    "memory-add": "/memories/new/",
    "layers": "/layers/",
    "layers-traits": "/layers/{persona}/traits/",
    "layers-tune": "/layers/{persona}/tune/",
    "graph": "/graph/",
    "forms": "/forms/",
    "reviews": "/reviews/",
    "chat": "/chat/",
    "conversation": "/chat/{conversation}/",
    "store": "/store/",
    "store-pack": "/store/{pack}/",
    "store-try": "/store/{pack}/try/",
    "store-report": "/store/{pack}/report/",
    "store-installed": "/store/installed/",
    "store-subscription": "/store/subscriptions/{subscription}/",
    "store-reword": "/store/installed/{pack_memory}/",
    "store-propose": "/store/subscriptions/{subscription}/propose/{pack_memory}/",
    "store-wordings": "/store/wordings/{memory}/",
    "store-published": "/store/own/",
    "store-publish": "/store/publish/",
    "store-subscribers": "/store/contracts/",
    "store-proposals": "/store/proposals/",
    "store-moderation": "/store/moderation/",
    "access": "/access/",
    "access-memory": "/access/memory/{memory}/",
    "personas": "/personas/",
    "persona": "/personas/{persona}/",
    "presets": "/presets/",
    "namespaces": "/namespaces/",
    "namespace": "/namespaces/{namespace}/",
    "namespace-past": "/namespaces/{namespace}/past/",
    "subjects": "/subjects/",
    "subject": "/subjects/{subject}/",
    "policies": "/policies/",
    "policy": "/policies/{policy}/",
    "quotas": "/quotas/",
    "holds": "/holds/",
    "hold": "/holds/{hold}/",
    "audit": "/audit/?kind=writes",
    "audit-verify": "/audit/verify/",
    "audit-checkpoints": "/audit/checkpoints/",
    "audit-unusual-reads": "/audit/unusual-reads/",
    "audit-permission-changes": "/audit/permission-changes/",
    "audit-exports": "/audit/exports/",
    "audit-sinks": "/audit/sinks/",
    "jobs": "/jobs/",
    "schedules": "/schedules/?count=soon",
    "pipelines": "/pipelines/",
    "schedule": "/jobs/schedules/new/?kind=lifecycle.sweep",
    "exchange": "/exchange/",
    "exchange-peer": "/exchange/peers/new/",
    "integrations": "/integrations/",
    "notices": "/notices/",
    "members": "/settings/members/",
    "keys": "/settings/keys/",
    "models": "/settings/models/",
    "sign-in-rules": "/settings/sign-in/",
    "account": "/account/",
    "components": "/ui/",
    "admin": "/admin/",
    "overview": "/overview/",  # last: its numbers are counted every few minutes
}
BEFORE_SIGN_IN = {"sign-in": "/sign-in/", "forgotten": "/sign-in/~/forgotten/"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of pages; default: all, and former pictures are removed")
    only = parser.parse_args().only
    chromium = shutil.which("chromium")
    if chromium is None:
        print("memos: screenshots need Chromium (apt-get install chromium fonts-noto-cjk)", file=sys.stderr)
        return 1
    if only is None:
        shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True, exist_ok=True)
    with installation() as (address, environ), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(base_url=address, locale="en-GB", timezone_id="Europe/Brussels")
        taken = pictures_take(context.new_page(), BEFORE_SIGN_IN, only)
        sign_in(context, environ)
        if only is None or "overview" in only:
            wait_until_counted(context)
        taken += pictures_take(context.new_page(), pages_found(context), only)
        browser.close()
    if only is None:
        (PICTURES / "README.md").write_text(index_of(taken), encoding="utf-8")
    size = sum(path.stat().st_size for path in PICTURES.iterdir())
    print(f"{len(taken)} pages, {len(list(PICTURES.glob('*.webp')))} pictures, {size / 1e6:.1f} MB")
    return 0


@contextmanager
def installation() -> Iterator[tuple[str, dict[str, str]]]:
    """A server with the demo, and nothing left to do for its worker; its address and environment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="memos-screenshots-") as folder:
        environ = {**os.environ, "MEMOS_DATA_DIR": f"{folder}/data", "MEMOS_PORT": str(port)}
        with (Path(folder) / "log").open("wb") as log:
            server = subprocess.Popen([sys.executable, "manage.py", "up"], cwd=ROOT, env=environ, stderr=log)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until_ready(address, server, START_SECONDS)
            command(environ, "demo")
            wait_until_ready(address, server, SETTLE_SECONDS, settled=True)
            yield address, environ
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=30)


def wait_until_ready(address: str, server: "subprocess.Popen[bytes]", seconds: float, *, settled: bool = False) -> None:
    """settled: and no event waits for the worker. Raises RuntimeError."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/readyz", timeout=5) as answer:
                if not settled or json.load(answer)["checks"]["outbox"]["due"] == 0:
                    return
        except OSError:
            pass  # it is still starting
        time.sleep(0.5)
    raise RuntimeError("the server does not get ready")


def wait_until_counted(context: BrowserContext) -> None:
    """Wait for the numbers of the overview, which a job counts every two minutes. Raises RuntimeError."""
    deadline = time.monotonic() + COUNTED_SECONDS
    while time.monotonic() < deadline:
        if NOT_COUNTED not in context.request.get("/overview/").text():
            return
        time.sleep(2)
    raise RuntimeError("the overview is not counted")


def command(environ: dict[str, str], *words: str) -> dict[str, Any]:
    """The JSON reply of `manage.py …`. Raises CalledProcessError."""
    done = subprocess.run(
        [sys.executable, "manage.py", *words, "--json"], cwd=ROOT, env=environ, check=True, stdout=subprocess.PIPE
    )
    reply: dict[str, Any] = json.loads(done.stdout)
    return reply


def sign_in(context: BrowserContext, environ: dict[str, str]) -> None:
    """As the owner of the demo, who may also see the pages of operators."""
    owner = command(environ, "demo")["people"][0]
    command(environ, "operator_set", "--email", owner["email"])
    page = context.new_page()
    page.goto(owner["sign_in_link"])
    page.locator("main form button[type=submit]").first.click()
    page.wait_for_url(lambda address: "/sign-in/" not in address)
    page.close()


def pages_found(context: BrowserContext, pages: dict[str, str] = PAGES) -> dict[str, str]:
    """The pages with the ids of the demo's rows in their addresses."""
    rows = rows_find(context)
    return {name: address.format(**rows) for name, address in pages.items()}


def rows_find(context: BrowserContext) -> dict[str, str]:
    """Ids of the rows that the pages about one thing show."""

    def results(path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = context.request.get(f"/api/v1/{path}").json()["results"]
        return found

    memories = results("memories/?namespace=/team/glazes&page_size=200")
    subscription = results("subscriptions/")[0]
    return {
        "memory": next(memory["id"] for memory in memories if memory["content"].startswith(CONTENT)),
        "subject": results("subjects/")[0]["id"],
        "conversation": results("conversations/")[1]["id"],
        "persona": next(persona["id"] for persona in results("personas/") if persona["name"] == "Shop desk"),
        "namespace": next(
            namespace["id"] for namespace in results("namespaces/?page_size=200") if namespace["path"] == "/team/glazes"
        ),
        "policy": results("policies/")[-1]["id"],
        "hold": results("holds/")[-1]["id"],
        "pack": subscription["name"],
        "subscription": subscription["id"],
        "pack_memory": results(f"memories/?namespace={subscription['namespace']['path']}")[0]["id"],
    }


def pictures_take(page: Page, pages: dict[str, str], only: list[str] | None) -> list[str]:
    """The names of the pages that are there."""
    taken = []
    for name, address in pages.items():
        if only is not None and name not in only:
            continue
        answer = page.goto(address)
        if answer is not None and answer.status == 404:
            print(f"left out: {address} is not there", file=sys.stderr)
            continue
        for size, viewport in SIZES.items():
            page.set_viewport_size(viewport)
            for theme in THEMES:
                page.emulate_media(color_scheme=theme, reduced_motion="reduce")
                page.wait_for_function(SHOWN, arg=theme)
                page.goto(address)
                page.wait_for_load_state("networkidle")
                (PICTURES / f"{name}-{theme}-{size}.webp").write_bytes(picture(page))
        taken.append(name)
    page.close()
    return taken


def picture(page: Page) -> bytes:
    """Return the visible window as WebP of at most MOST_BYTES."""
    session = page.context.new_cdp_session(page)
    quality = 80
    while True:
        shot = session.send("Page.captureScreenshot", {"format": "webp", "quality": quality})
        data = base64.b64decode(shot["data"])
        if len(data) <= MOST_BYTES or quality <= LEAST_QUALITY:
            session.detach()
            return data
        quality -= 10


def index_of(names: list[str]) -> str:
    lines = ["# Screenshots", "", "Every page of the demo. `make screenshots` takes them anew.", ""]
    lines += ["| page | desktop | phone |", "| --- | --- | --- |"]
    for name in names:
        cells = [" · ".join(f"[{theme}]({name}-{theme}-{size}.webp)" for theme in THEMES) for size in SIZES]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
