"""Labelled records in English and Chinese, made from a seed: personal data in sentences, and what only looks like it.

Nothing here asks the product or its libraries: numbers are made from the published rules (Luhn, ISO 7064, ISO 13616,
GB 11643, E.164) by hand, so that a detector that gets a rule wrong is found out.
"""

import base64
import json
import random
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from governance.vocabulary import PiiKind

Maker = Callable[[random.Random], str]
NEGATIVES_SHARE = 0.4
PASSWORD = ("password is ", "passwd=", "密码是", "口令：")  # what introduces one


@dataclass(frozen=True)
class Label:
    kind: PiiKind
    start: int
    end: int


@dataclass(frozen=True)
class Record:
    """A text and all the personal data in it. `about`: what it was made to show."""

    text: str
    labels: tuple[Label, ...]
    about: str


def records(language: str, count: int, *, seed: int) -> list[Record]:
    """`count` records; the same for the same seed."""
    rng = random.Random(f"{language}/{seed}")
    return [_record(rng, LANGUAGES[language]) for _ in range(count)]


@dataclass(frozen=True)
class Language:
    """Sentences with a `{}` for a value, by kind; what surrounds them; traps that hold nothing."""

    sentences: dict[PiiKind, Sequence[str]]
    makers: dict[PiiKind, Sequence[Maker]]
    fillers: Sequence[str]
    traps: Sequence[tuple[str, Maker]]
    joint: Sequence[str]


def _record(rng: random.Random, language: Language) -> Record:
    if rng.random() < NEGATIVES_SHARE:
        sentence, make = rng.choice(language.traps)
        text = rng.choice(language.joint).join((_filler(rng, language), sentence.replace("{}", make(rng))))
        return Record(text, (), f"trap: {sentence}")
    return _positive(rng, language)


def _positive(rng: random.Random, language: Language) -> Record:
    text, labels, about = "", [], []
    for _ in range(rng.choice((1, 1, 1, 2))):
        kind = rng.choice(list(language.sentences))
        before, after = rng.choice(language.sentences[kind]).split("{}")
        make = password if before.endswith(PASSWORD) else rng.choice(language.makers[kind])
        value = make(rng)
        if rng.random() < 0.5:
            text += _filler(rng, language) + rng.choice(language.joint)
        text += before
        labels.append(Label(kind, len(text), len(text) + len(value)))
        text += value + after + rng.choice(language.joint)
        about.append(kind)
    return Record(text, tuple(labels), " ".join(about))


def _filler(rng: random.Random, language: Language) -> str:
    return rng.choice(language.fillers)


# Values


def digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(string.digits, k=count))


def luhn_digit(body: str) -> str:
    total = 0
    for place, character in enumerate(reversed(body)):
        doubled = int(character) * (2 if place % 2 == 0 else 1)
        total += doubled - 9 if doubled > 9 else doubled
    return str(-total % 10)


def card(rng: random.Random) -> str:
    issuers = (("4", 16), ("51", 16), ("55", 16), ("2221", 16), ("34", 15), ("37", 15), ("6222", 19), ("6011", 16))
    prefix, length = rng.choice(issuers)
    body = prefix + digits(rng, length - len(prefix) - 1)
    number = body + luhn_digit(body)
    separator = rng.choice(("", "", " ", "-"))
    if length == 16 and separator:
        return separator.join(number[at : at + 4] for at in range(0, 16, 4))
    return number


def wrong_luhn(rng: random.Random) -> str:
    body = "4" + digits(rng, 14)
    return body + str((int(luhn_digit(body)) + rng.randint(1, 9)) % 10)


def iban(rng: random.Random) -> str:
    country, bban = rng.choice(
        (
            ("GB", "NWBK" + digits(rng, 14)),
            ("NL", "ABNA" + digits(rng, 10)),
            ("AT", digits(rng, 16)),
            ("LU", "001" + digits(rng, 13)),
            ("IE", "AIBK" + digits(rng, 14)),
        )
    )
    turned = "".join(str(int(character, 36)) for character in f"{bban}{country}00")
    number = f"{country}{98 - int(turned) % 97:02}{bban}"
    if rng.random() < 0.5:
        return " ".join(number[at : at + 4] for at in range(0, len(number), 4))
    return number


def resident_id(rng: random.Random) -> str:
    place = rng.choice(("110105", "310104", "440305", "510107", "330106", "420106", "320102"))
    born = f"{rng.randint(1985, 2005)}{rng.randint(1, 12):02}{rng.randint(1, 28):02}"
    body = place + born + digits(rng, 3)
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(digit) * weight for digit, weight in zip(body, weights, strict=True))
    return body + "10X98765432"[total % 11]


def ssn(rng: random.Random) -> str:
    area = rng.choice([number for number in range(1, 900) if number != 666])
    return f"{area:03}-{rng.randint(1, 99):02}-{rng.randint(1, 9999):04}"


def nino(rng: random.Random) -> str:
    parts = [rng.choice(("AB", "CE", "JM", "PX", "SR")), *(digits(rng, 2) for _ in range(3)), rng.choice("ABCD")]
    return rng.choice(("", " ")).join(parts)


def mail(rng: random.Random) -> str:
    name = rng.choice(("li.lei", "anna", "zhang_wei", "j.smith+news", "wang.fang88", "o-brien", "x", "sales2026"))
    host = rng.choice(("example.com", "mail.example.cn", "163.com", "qq.com", "uni-koeln.de", "a.b.example.co.uk"))
    return f"{name}@{host}"


def cn_mobile(rng: random.Random) -> str:
    number = rng.choice(("138", "139", "150", "186", "177", "199")) + digits(rng, 8)
    grouped = rng.choice("- ").join((number[:3], number[3:7], number[7:]))
    return rng.choice((number, number, f"+86 {number}", f"+86{number}", grouped))


def wide_mobile(rng: random.Random) -> str:
    """Full-width digits, as an input method leaves them."""
    return "".join(chr(ord(digit) + 0xFEE0) for digit in "139" + digits(rng, 8))


def cn_landline(rng: random.Random) -> str:
    return f"{rng.choice(('010', '021', '020'))}-{rng.choice('68')}{digits(rng, 7)}"


def us_phone(rng: random.Random) -> str:
    area, exchange, line = rng.choice(("212", "415", "617", "312", "206")), f"2{digits(rng, 2)}", digits(rng, 4)
    if exchange == "211":
        exchange = "234"
    shapes = ("({}) {}-{}", "{}-{}-{}", "{}.{}.{}", "+1 {} {} {}", "+1{}{}{}", "1-{}-{}-{}")
    return rng.choice(shapes).format(area, exchange, line)


def gb_phone(rng: random.Random) -> str:
    shape = rng.choice(("020 7946 {a}", "+44 20 7946 {a}", "+44 7400 {b}", "07400 {b}"))
    return shape.format(a=digits(rng, 4), b=digits(rng, 6))


def foreign_phone(rng: random.Random) -> str:
    return rng.choice(("+49 30 901820", "+33 1 42 68 53 00", "+81 90 1234 5678", "+61 412 345 678", "+65 6123 4567"))


def ipv4(rng: random.Random) -> str:
    return f"{rng.choice((10, 192, 172, 8, 203))}.{rng.randint(0, 255)}.{rng.randint(0, 255)}.{rng.randint(1, 254)}"


def ipv6(rng: random.Random) -> str:
    part = rng.randint(0x1000, 0xFFFF)
    return rng.choice((f"2001:db8::{part:x}", f"fe80::{part:x}:1", f"2001:db8:85a3:0:0:8a2e:370:{part:x}"))


def mac(rng: random.Random) -> str:
    separator = rng.choice(":-")
    return separator.join(["0a", *(f"{rng.randint(0, 255):02x}" for _ in range(5))])


def _letters(rng: random.Random, count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(rng.choices(alphabet, k=count))


def api_key(rng: random.Random) -> str:
    upper = string.ascii_uppercase + "234567"
    return rng.choice(
        (
            f"sk-proj-{_letters(rng, 40)}",
            f"sk-{_letters(rng, 48)}",
            f"ghp_{_letters(rng, 36)}",
            f"AKIA{_letters(rng, 16, upper)}",
            f"xoxb-{digits(rng, 12)}-{_letters(rng, 24)}",
            f"AIza{_letters(rng, 35)}",
            f"glpat-{_letters(rng, 20)}",
            f"mos_{_letters(rng, 12, '0123456789abcdef')}_{_letters(rng, 43)}",
            _jwt(rng),
        )
    )


def _jwt(rng: random.Random) -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": digits(rng, 8)})
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*coded, _letters(rng, 43)])


def private_key(rng: random.Random) -> str:
    body = "\n".join(_letters(rng, 64) for _ in range(3))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"


def password(rng: random.Random) -> str:
    return rng.choice(("Sommer", "hunter", "Xk9", "dragon")) + rng.choice("!#$%&*") + digits(rng, 4)


# What only looks like it


def wrong_iban(rng: random.Random) -> str:
    right = iban(rng)
    return f"{right[:2]}{(int(right[2:4]) + rng.randint(1, 96)) % 97:02}{right[4:]}"


def wrong_resident_id(rng: random.Random) -> str:
    right = resident_id(rng)
    return right[:17] + rng.choice([digit for digit in string.digits if digit != right[17]])


def order_number(rng: random.Random) -> str:
    """Some look like cards, some like mobile numbers; the word before them says what they are."""
    shapes = (digits(rng, 16), digits(rng, 11), f"139{digits(rng, 8)}", f"20261120{digits(rng, 10)}")
    return rng.choice((*shapes, f"SO-{digits(rng, 9)}"))


def bare_number(rng: random.Random) -> str:
    return rng.choice((wrong_luhn(rng), f"2{digits(rng, 9)}", f"17{digits(rng, 8)}", digits(rng, 8), digits(rng, 14)))


def day(rng: random.Random) -> str:
    year, month, dom = rng.randint(1990, 2030), rng.randint(1, 12), rng.randint(1, 28)
    shape = rng.choice(("{0}-{1:02}-{2:02}", "{2:02}.{1:02}.{0}", "{0}/{1:02}/{2:02} 10:30:45", "{0}{1:02}{2:02}"))
    return shape.format(year, month, dom)


def version(rng: random.Random) -> str:
    return f"{rng.randint(1, 20)}.{rng.randint(0, 30)}.{rng.randint(0, 99)}.{rng.randint(0, 99)}"


def isbn(rng: random.Random) -> str:
    return f"978-7-{digits(rng, 3)}-{digits(rng, 5)}-{digits(rng, 1)}"


def price(rng: random.Random) -> str:
    return f"{rng.choice('$¥€')}{rng.randint(1, 999)},{digits(rng, 3)},{digits(rng, 3)}.{digits(rng, 2)}"


def hexadecimal(rng: random.Random) -> str:
    return _letters(rng, rng.choice((7, 32, 40, 64)), "0123456789abcdef")


def code(rng: random.Random) -> str:
    return rng.choice(
        (
            "std::vector<int> a(10); b = c::d(2);",
            "for i in range(1000000, 2000000): total += i",
            "@property\ndef key(self): return self._key",
            "token_count = 4096; secret = get_secret('db')",
            "git clone git@github.com:example/project.git",
            "npm install react@18.2.0-beta.1",
            "<img src='logo@2x.png' width=1024>",
            'password = os.environ["DB_PASSWORD"]',
            "arr[1:2, 3:4] = x[5::6]",
        )
    )


def uuid(rng: random.Random) -> str:
    return str(UUID(int=rng.getrandbits(128), version=4))


def decimal(rng: random.Random) -> str:
    return f"{rng.choice('0123')}.{digits(rng, 10)}"


def write_nothing(rng: random.Random) -> str:
    return ""


COMMON_MAKERS: dict[PiiKind, Sequence[Maker]] = {
    PiiKind.EMAIL: (mail,),
    PiiKind.CARD: (card,),
    PiiKind.IBAN: (iban,),
    PiiKind.NETWORK_ADDRESS: (ipv4, ipv4, ipv6, mac),
    PiiKind.SECRET: (api_key, api_key, private_key),
}
ENGLISH = Language(
    sentences={
        PiiKind.EMAIL: ("Write to {}.", "Her address is {}, she said", "<{}>", "cc: {};", "mailto:{}"),
        PiiKind.PHONE: ("Call {} after six.", "His number: {}", "Phone {}, ask for Jo", "I moved; {} is new.", "({})"),
        PiiKind.CARD: ("She paid with {}.", "Card {} expires 12/27", "my visa is {}, remember it", "PAN={}"),
        PiiKind.IBAN: ("Transfer it to {}.", "IBAN: {} please", "The account {} is hers"),
        PiiKind.NATIONAL_ID: ("Her SSN is {}.", "NI number {} on file", "id {};"),
        PiiKind.NETWORK_ADDRESS: ("The server is {}.", "ssh {} works", "blocked {} today", "host={} up"),
        PiiKind.SECRET: (
            "The key is {}",
            "export KEY={}",
            "Use {} for now",
            "Authorization: Bearer {}",
            "My password is {}",
            "passwd={} ",
        ),
    },
    makers={
        **COMMON_MAKERS,
        PiiKind.PHONE: (us_phone, gb_phone, foreign_phone, cn_mobile),
        PiiKind.NATIONAL_ID: (ssn, nino),
    },
    fillers=(
        "Anna moved to Lisbon in 2024.",
        "The meeting is at 10:30 in room 4.",
        "He runs 5 km every morning",
        "Nothing new today.",
        "Version 2 ships next week, she said.",
        "They planted 120 trees.",
    ),
    traps=(
        ("Your order {} has shipped.", order_number),
        ("Order number {}", order_number),
        ("It ended with {} in the log.", bare_number),
        ("On {} we met.", day),
        ("Upgrade to version {} soon.", version),
        ("ISBN {} is out of print.", isbn),
        ("It cost {} in the end.", price),
        ("Commit {} broke it.", hexadecimal),
        ("`{}`", code),
        ("The id {} was deleted.", uuid),
        ("Pi is about {}.", decimal),
        ("The voucher {} is void.", wrong_iban),
        ("Barcode {} was scanned.", wrong_resident_id),
        ("It read {} on the box.", wrong_luhn),
        ("The key is under the mat and the token is expired.{}", write_nothing),
        ("The password is required; the secret is patience.{}", write_nothing),
        ("Meet me @noon, room 12-34-56.{}", write_nothing),
        ("Seats 12-14, rows 100-200, pages 1000-2000.{}", write_nothing),
        ("localhost is 127.0.0.1 and the mask 255.255.255.0.{}", write_nothing),
    ),
    joint=(" ", "\n", " - "),
)
CHINESE = Language(
    sentences={
        PiiKind.EMAIL: ("邮箱{}请查收", "发到{}吧", "我的邮件是{}。", "联系：{}，谢谢"),
        PiiKind.PHONE: ("电话{}吗", "手机号是{}，晚上打", "打{}找小王", "我换号了{}记一下", "联系方式：{}"),
        PiiKind.CARD: ("银行卡{}吗", "卡号是{}，有效期12/27", "用{}付的款", "信用卡：{}。"),
        PiiKind.IBAN: ("请转到{}账户", "账号是{}。", "欧洲账户：{}，谢谢"),
        PiiKind.NATIONAL_ID: ("身份证{}号", "她的证件号是{}。", "实名信息：{}，已核对"),
        PiiKind.NETWORK_ADDRESS: ("ip是{}吗", "服务器{}宕机了", "网关：{}。", "从{}登录的"),
        PiiKind.SECRET: ("密钥是{}", "用这个{}试试", "令牌：{}", "接口密钥{}别外传", "密码是{}吗", "口令：{}。"),
    },
    makers={
        **COMMON_MAKERS,
        PiiKind.PHONE: (cn_mobile, cn_mobile, wide_mobile, cn_landline, foreign_phone),
        PiiKind.NATIONAL_ID: (resident_id,),
    },
    fillers=(
        "小李2024年搬到了上海。",
        "会议在上午10点30分，4号会议室",
        "她每天跑5公里，",
        "今天没什么新鲜事。",
        "他们种了120棵树",
        "下周发布第2版，她说。",
    ),
    traps=(
        ("订单{}已发货", order_number),
        ("您的订单号是{}，请保留", order_number),
        ("日志最后是{}。", bare_number),
        ("{}那天我们见过", day),
        ("请升级到版本{}吧", version),
        ("书号{}已绝版", isbn),
        ("一共花了{}呢", price),
        ("提交{}有问题", hexadecimal),
        ("代码`{}`报错", code),
        ("编号{}已删除", uuid),
        ("圆周率约为{}。", decimal),
        ("代金券{}已作废", wrong_iban),
        ("扫描到{}这串数字", wrong_resident_id),
        ("盒子上写着{}呢", wrong_luhn),
        ("钥匙在垫子下面，令牌已过期，密码是必填项。{}", write_nothing),
        ("第1000-2000页，12-14座，共3000人。{}", write_nothing),
        ("本机是127.0.0.1，掩码255.255.255.0。{}", write_nothing),
        ("全场满100减20，限时2小时！{}", write_nothing),
        ("快递单号{}派送中", order_number),
    ),
    joint=("", "。", "，", "\n"),
)
LANGUAGES = {"en": ENGLISH, "zh": CHINESE}


def read_marked(text: str) -> Record:
    """A text in which values are marked as `{{value|kind}}`."""
    plain, labels = "", []
    for part in re.split(r"(\{\{.*?\}\})", text):
        value, _, kind = part[2:-2].rpartition("|") if part.startswith("{{") else (part, "", "")
        if kind:
            labels.append(Label(PiiKind(kind), len(plain), len(plain) + len(value)))
        plain += value
    return Record(plain, tuple(labels), "by hand")
