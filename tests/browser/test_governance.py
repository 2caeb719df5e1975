"""The pages of governance in a real browser: looked at in both themes, at a desk and on a phone."""

import pytest

from tests.browser.conftest import OpenVisit, memory_add
from tests.browser.looks import looked_at
from tests.harness.product import RunningServer

pytestmark = [pytest.mark.browser, pytest.mark.full]

PAGES = (
    "/jobs/",
    "/jobs/?list=all",
    "/jobs/?list=dead",
    "/schedules/",
    "/schedules/?count=soon",
    "/jobs/schedules/new/",
    "/jobs/schedules/new/?kind=audit.export",
    "/access/",
    "/access/recall/",
    "/audit/",
    "/audit/?kind=writes&verb=memory.created",
    "/audit/permission-changes/",
    "/audit/verify/",
    "/audit/checkpoints/",
    "/settings/models/",
    "/reviews/",
    "/policies/",
    "/policies/new/retention/",
    "/quotas/",
    "/holds/",
    "/holds/new/?q=peanuts",
    "/holds/new/?over=query",
    "/holds/new/?over=subject",
)


@pytest.mark.parametrize("address", PAGES)
def test_a_page_of_governance_has_no_serious_finding(visit: OpenVisit, server: RunningServer, address: str) -> None:
    memory_add(server, content="Leo is allergic to peanuts.", namespace="/families/okafor")
    page = visit().page
    page.goto(address)
    assert looked_at(page) == []
