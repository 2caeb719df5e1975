"""A page in every scheme and on every width."""

from playwright.sync_api import Page

from tests.browser.test_accessibility import WIDTHS, findings


def looked_at(page: Page) -> list[str]:
    """What axe finds on the page as it stands; nothing on it may be wider than the window."""
    found: list[str] = []
    for width, size in WIDTHS.items():
        page.set_viewport_size({"width": size["width"], "height": size["height"]})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{page.url} is too wide: {width}"
        for dark in (False, True):
            page.emulate_media(color_scheme="dark" if dark else "light")
            found += [f"{width}, {'dark' if dark else 'light'}: {one}" for one in findings(page)]
    return found
