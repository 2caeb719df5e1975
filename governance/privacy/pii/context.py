"""Words before a number that tell its meaning, for kinds of numbers without a distinctive form."""

import re
from enum import StrEnum

REACH = 24  # characters before a number in which a word speaks of it


class Topic(StrEnum):
    PHONE = "phone"
    CARD = "card"
    NATIONAL_ID = "national_id"
    NETWORK = "network"
    OTHER = "other"  # an order, an invoice, a version: numbers that are nobody's


_WORDS = {
    Topic.PHONE: (
        "(?:cell|mobile|tele)?phones?|mobile|cell|tel|call|whatsapp|wechat|sms|text|fax|dial|ring|reach|hotline",
        "电话|手机|座机|热线|联系|致电|拨打|传真|微信|号码是",
    ),
    Topic.CARD: ("cards?|visa|mastercard|amex|unionpay|debit|credit|pan", "银行卡|信用卡|储蓄卡|借记卡|卡号|银联"),
    Topic.NATIONAL_ID: ("ssn|social security|nino|national insurance|passport|id card", "身份证|证件"),
    Topic.NETWORK: ("ip|ipv[46]|address|host|server|gateway|subnet|dns|mac|from", "地址|网关|主机|服务器"),
    Topic.OTHER: (
        "orders?|invoices?|po|tickets?|tracking|refs?|references?|isbn|issn|sku|serial|builds?|versions?|release|v|batch"
        "|commit|hash|section|chapter|case|shipments?|parcel|receipt|transaction|part|item|doi|rfc|article|total|price",
        "订单|单号|流水|编号|发票|快递|运单|版本|序列|货号|书号|型号|批次|条码|价格|金额|总计|合计",
    ),
}
_WORD = re.compile(
    "|".join(f"(?P<{topic}>(?<![a-z0-9])(?:{latin})(?![a-z])|{han})" for topic, (latin, han) in _WORDS.items()),
    re.IGNORECASE,
)
_LETTER = re.compile("[a-z\u4e00-\u9fff]", re.IGNORECASE)
_ENDS = "\n。！？；"  # not the full stop: it stands in `No. 7` too


def topic_before(text: str, start: int) -> Topic | None:
    """Return the topic of the last known word before `start` in its sentence, or None."""
    if not _LETTER.search(text, max(0, start - REACH), start):
        return None
    sentence = max(text.rfind(end, max(0, start - REACH), start) for end in _ENDS)
    names = [found.lastgroup for found in _WORD.finditer(text, max(0, start - REACH, sentence), start)]
    return Topic(names[-1]) if names and names[-1] else None
