"""A page in every scheme and on every width."""

from typing import Literal

from playwright.sync_api import Page, ViewportSize

from scripts.screenshots import SHOWN
from tests.browser.test_accessibility import findings

WIDTHS: dict[str, ViewportSize] = {"desk": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}
SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")


def looked_at(page: Page) -> list[str]:
    """Return the findings of axe on the page; no element may be wider than the window."""
    found: list[str] = []
    for width, size in WIDTHS.items():
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{page.url} is too wide: {width}"
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # else the colours of buttons fade
            page.wait_for_function(SHOWN, arg=scheme)
            found += [f"{width}, {scheme}: {finding}" for finding in findings(page)]
    return found
