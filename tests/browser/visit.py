"""A window that listens for what the browser complains of."""

from playwright.sync_api import ConsoleMessage, Error, Locator, Page

EXPECTED = "Failed to load resource"  # the browser says so of every 4xx; the tests look at those themselves

# Counts what a person clicks, also across pages; keys are not counted.
COUNT_CLICKS = """addEventListener("click", (event) => {
  if (event.isTrusted && event.detail > 0)
    sessionStorage.setItem("clicks", Number(sessionStorage.getItem("clicks")) + 1);
}, true)"""


def count_clicks(page: Page) -> int:
    """Return the number of clicks in this window so far."""
    return int(page.evaluate("Number(sessionStorage.getItem('clicks'))"))


class Visit:
    """A page, with the errors of its scripts and the violations of its content security policy."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._record_message)
        page.on("pageerror", self._record_error)

    def _record_message(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not message.text.startswith(EXPECTED):
            self.complaints.append(message.text)

    def _record_error(self, error: Error) -> None:
        self.complaints.append(f"script: {error.message}")


def ask(page: Page, question: str) -> None:
    """Type a question and press Enter."""
    page.locator("#question").fill(question)
    page.keyboard.press("Enter")


def submit(button: Locator) -> None:
    """Press a button that writes, and wait for the server's answer: leaving the page before it cancels the request."""
    with button.page.expect_response(lambda answer: answer.request.method == "POST"):
        button.click()
