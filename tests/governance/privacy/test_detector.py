"""Tests of detection by example, and of its time on every text."""

import time

import pytest

from governance.privacy.pii.detector import DetectorFailed, PatternDetector
from governance.privacy.pii.pii_ranges import Span, merge_overlaps, redact
from governance.privacy.pii.secrets import entropy
from governance.privacy.pii.spelling import fold
from governance.vocabulary import PiiKind
from tests.harness.cases import each_case

REGIONS = ("CN", "US", "GB")
LONGEST = 30_000
BEGIN, END = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
KEY = f"{BEGIN}\nMIIB\n{END}"


def detect(text: str, *, regions: tuple[str, ...] = REGIONS) -> list[tuple[str, str]]:
    return [(str(span.kind), text[span.start : span.end]) for span in PatternDetector(regions).find(text)]


@each_case(
    ("text", "values"),
    [
        ("银行卡4111111111111111吗", [("card", "4111111111111111")]),
        ("邮箱li@example.cn手机13812345678", [("email", "li@example.cn"), ("phone", "13812345678")]),
        ("ip是10.1.2.3吗", [("network_address", "10.1.2.3")]),
        ("身份证11010519491231002X号", [("national_id", "11010519491231002X")]),
        ("密码是Hunter2!x", [("secret", "Hunter2!x")]),
        ("打１３８１２３４５６７８找我", [("phone", "１３８１２３４５６７８")]),
        ("138\u200b1234\u200b5678", [("phone", "138\u200b1234\u200b5678")]),
        ("+86 138 1234 5678", [("phone", "+86 138 1234 5678")]),
        ("(415) 555-2671 / 020 7946 0958", [("phone", "(415) 555-2671"), ("phone", "020 7946 0958")]),
        ("+44 (0)20 7946 0958", [("phone", "+44 (0)20 7946 0958")]),
        ("dial 0049 30 901820 now", [("phone", "0049 30 901820")]),
        ("2026 4111 1111 1111 1111", [("card", "4111 1111 1111 1111")]),
        ("pay GB82 WEST 1234 5698 7654 32 today", [("iban", "GB82 WEST 1234 5698 7654 32")]),
        ("de89370400440532013000", [("iban", "de89370400440532013000")]),
        ("SSN 536-90-4399, or my ssn: 536904399", [("national_id", "536-90-4399"), ("national_id", "536904399")]),
        ("NINO AB 12 34 56 C", [("national_id", "AB 12 34 56 C")]),
        ("fe80::1ff:fe23:4567:890a", [("network_address", "fe80::1ff:fe23:4567:890a")]),
        ("00:1a:2b:3c:4d:5e", [("network_address", "00:1a:2b:3c:4d:5e")]),
        ("postgres://app:s3cret@db.example.com/x", [("secret", "s3cret")]),
        ("-----BEGIN PRIVATE KEY-----\nMIIB", [("secret", "-----BEGIN PRIVATE KEY-----\nMIIB")]),
        (f"x {KEY} y", [("secret", KEY)]),
        (f"{BEGIN}中{KEY}", [("secret", BEGIN), ("secret", KEY)]),
        (f"{BEGIN}{'a' * 16_001}{END}", [("secret", f"{BEGIN}{'a' * 16_001}")]),
        ("api_key = 'a8f3K2m9Qx71Lp0z'", [("secret", "a8f3K2m9Qx71Lp0z")]),
    ],
)
def test_it_finds(text: str, values: list[tuple[str, str]]) -> None:
    assert detect(text) == values


@pytest.mark.parametrize(
    "text",
    [
        "订单号13812345678",
        "order 4111111111111111",
        "4111111111111112",
        "9111111111111111118",
        "GB83 WEST 1234 5698 7654 32",
        "110105194912310021",
        "666-12-3456 and 000-12-3456",
        "2026-11-20 10:30:45, 20.11.2026, 20261120",
        "version 1.2.3.4, v10.0.0.1, 256.1.1.1, 1.2.3",
        "127.0.0.1 and ::1 and 255.255.255.0",
        "std::vector, a::b, 10:20, 12:30:45",
        "react@18.2.0-beta.rc logo@2x.png git@github.com:org/repo.git @li",
        "the token is expired; password: required; key=value; secret = os.environ['X']",
        "ISBN 978-7-111-54742-6, $1,234,567.89, pi is 3.1415926535, 1700000000",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "550e8400-e29b-41d4-a716-446655440000",
        "[email] [phone] [card] [iban] [national_id] [network_address] [secret]",
        "",
    ],
)
def test_text_without_personal_data_is_left_unmarked(text: str) -> None:
    assert detect(text) == []


def test_whose_phone_numbers_need_no_country_code_can_be_chosen() -> None:
    assert detect("tel 030 901820", regions=("DE",)) == [("phone", "030 901820")]
    assert detect("tel 030 901820", regions=("CN",)) == []
    with pytest.raises(DetectorFailed):
        PatternDetector(("XX",)).find("tel 030 901820")


def test_a_card_within_a_phone_number_is_no_card() -> None:
    phone, card = Span(PiiKind.PHONE, 0, 17, "phone"), Span(PiiKind.CARD, 1, 15, "card:luhn")
    assert merge_overlaps([card, phone]) == (phone,)


def test_a_secret_holds_what_stands_in_it() -> None:
    secret, mail = Span(PiiKind.SECRET, 5, 10, "secret:address"), Span(PiiKind.EMAIL, 5, 20, "email")
    assert merge_overlaps([mail, secret]) == (secret,)


def test_placeholders_stand_where_the_values_stood() -> None:
    text = "邮箱li@example.cn手机13812345678。"
    assert redact(text, PatternDetector(REGIONS).find(text)) == "邮箱[email]手机[phone]。"


def test_place_in_the_folded_text_maps_to_the_original() -> None:
    seen = fold("a\u200b１\u2060２b")
    assert seen.text == "a12b"
    assert seen.original_range(1, 3) == (2, 5)
    assert fold("中文，和：标点").origins is None


def test_entropy_is_that_of_shannon() -> None:
    assert entropy("aaaa") == 0
    assert entropy("abcd") == 2


HOSTILE = (
    *("1", "1 ", "1-", "1.", "+1", "(1", "a@", "a.", ":", "a:", "0a:", "1.1.1.1.", "١", " ", "key=", "eyJ", "sk-"),
    *("4111 ", "123 456 7890 ", "13812345678 ", "tel 5551234567 ", "GB82 WEST ", "4111111111111111 ", "密码是"),
    *("key is is is ", "://a:", "-----BEGIN PRIVATE KEY-----", "eyJabcdefgh.", "１", "1\u200b", "a@b.co ", 'key" '),
    "11010519491231002X ",
)


@each_case("unit", HOSTILE)
def test_no_text_makes_it_long(unit: str) -> None:
    """Each a text of the longest size; in processor time, whatever else the machine does."""
    detector = PatternDetector(REGIONS)
    whole = (unit * LONGEST)[:LONGEST]
    started = time.thread_time()
    detector.find(whole)
    assert time.thread_time() - started < 5.0


def test_a_detector_that_takes_too_long_fails() -> None:
    with pytest.raises(DetectorFailed):
        PatternDetector(REGIONS, seconds=0.0).find("some text")
