"""`doctor --url` says which header a proxy does not pass on, and what to do."""

from django.test import override_settings

from memos_web.management.checks import Finding
from memos_web.management.proxy_check import check_proxy, find_faults
from tests.harness.cases import each_case

HERE: dict[str, str | None] = {
    "host": "memos.example",
    "x-forwarded-proto": "https",
    "x-forwarded-for": "192.0.2.7",
    "authorization": "Bearer of-doctor",
    "client": "192.0.2.7",
}
PRODUCTION = {
    "PUBLIC_URL": "https://memos.example",
    "SECURE_SSL_REDIRECT": True,
    "SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https"),
}


@each_case(
    ("arrived", "says"),
    [
        ({}, []),
        ({"host": "127.0.0.1:8000"}, ["Host is 127.0.0.1:8000, not memos.example"]),
        ({"x-forwarded-proto": None}, ["X-Forwarded-Proto is missing"]),
        ({"x-forwarded-proto": "http"}, ["X-Forwarded-Proto is http"]),
        ({"x-forwarded-for": None}, ["X-Forwarded-For is missing"]),
        ({"client": "172.30.83.2"}, ["X-Forwarded-For of 172.30.83.2 does not count"]),
        ({"authorization": None}, ["Authorization is missing"]),
        ({"host": None, "x-forwarded-for": None}, ["Host is missing", "X-Forwarded-For is missing"]),
    ],
)
def test_missing_header_is_named(arrived: dict[str, str | None], says: list[str]) -> None:
    with override_settings(**PRODUCTION):
        faults = list(find_faults(HERE | arrived))
    assert len(faults) == len(says), faults
    assert all(fault.startswith(start) for fault, start in zip(faults, says, strict=True)), faults


def test_address_that_is_not_the_configured_one_is_refused() -> None:
    with override_settings(**PRODUCTION):
        found = check_proxy("https://other.example/")
    assert found == Finding(
        "proxy", False, "MEMOS_PUBLIC_URL is https://memos.example: set it to https://other.example"
    )
