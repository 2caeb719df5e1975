"""Odd spellings that tell who a person is: handles, letters apart, Chinese relatives, dates and streets in words.

Each text says what it becomes, and what of that is undecided.
"""

from governance.privacy.detection import detector
from tests.harness.cases import each_case
from vault.deidentification.deidentifier import Deidentifier, PersonFacts, find_undecided

NAMES = ("Martin Oskar Keller", "李雅婷", "Müller-Groß")
Case = tuple[str, str, list[str]]
HANDLES: tuple[Case, ...] = (
    ("Follow @martin_keller84 or kellerm1984.", "Follow [person] or [person].", []),
    ("See keller_cv_final.pdf and #KellerMartin2021.", "See [person] and [person].", []),
    ("She is m.keller84, he is mokeller.", "She is [person], he is [person].", []),
    ("Mueller and gross came, Muller too.", "[person] and gross came, [person] too.", []),
    ("It says k e l l e r and M-a-r-t-i-n.", "It says [person] and [person].", []),
    ("李 雅 婷和雅 婷。", "[person]和[person]。", []),
    ("Write to zoe_bright and rex1987.", "Write to zoe_bright and rex1987.", ["zoe_bright", "rex1987"]),
    ("It says p e t r a.", "It says p e t r a.", ["p e t r a"]),
    ("liyating明天来。", "liyating明天来。", ["liyating"]),
    ("Reminding them 🙂", "", []),
    ("his wife maria and s0fia", "[relative] maria and s0fia", ["maria", "s0fia"]),
    ("my carer, zofia, came; a dog called rex", "", ["zofia", "rex"]),
    ("snake case, mp3 and 10km", "snake case, mp3 and 10km", []),
)
INITIALS: tuple[Case, ...] = (
    ("M. O. Keller and M.-O. Keller met.", "[person] and [person] met.", []),
    ("Keller, M. O. signed; M.O.K. and Keller M.O. too.", "[person] signed; [person] and [person] too.", []),
    ("J.P.R. signed in the U.S. at 9 a.m.", "J.P.R. signed in the U.S. at 9 a.m.", ["J.P.R."]),
)
CHINESE: tuple[Case, ...] = (
    ("孙女甜甜和外孙乐乐来吃饭。", "[relative]和[relative]来吃饭。", []),
    ("闺女晓燕在家，岳父德福住院了。", "[relative]在家，[relative]住院了。", []),
    ("我哥建军开车。", "[relative]开车。", []),
    ("护工春兰陪着，司机老赵很准时。", "护工[person]陪着，司机[person]很准时。", []),
    ("邻居欧阳建平送来汤。", "邻居[person]送来汤。", []),
    ("弟弟铁柱种地，铁柱很忙。", "弟弟铁柱种地，铁柱很忙。", ["铁柱"]),
    ("保安大刚换班。", "保安大刚换班。", ["大刚"]),
    ("昨天见到秀芬了，尉迟文轩也在。", "昨天见到秀芬了，尉迟文轩也在。", ["秀芬", "尉迟文轩"]),
    ("爸爸退休在家，妈妈做饭，女儿毕业了。", "爸爸退休在家，妈妈做饭，女儿毕业了。", []),
    ("老师布置作业，学生努力学习，保姆请假了。", "老师布置作业，学生努力学习，保姆请假了。", []),
)
BIRTHS: tuple[Case, ...] = (
    (
        "She was born in nineteen fifty-eight, on the second day of the eleventh month.",
        "She was born in [birth_date], on the [birth_date].",
        [],
    ),
    ("He was born on the twenty-first of June, nineteen hundred and four.", "He was born on the [birth_date].", []),
    (
        "Jo, b. Sep '58; DOB 2.XI.1958, born 2/xi/58.",
        "Jo, b. [birth_date]; DOB [birth_date], born [birth_date].",
        ["Jo", "DOB"],
    ),
    ("I saw him; b. 3 oct '49", "I saw him; b. [birth_date]", []),
    ("他五八年生，生日是冬月廿二。", "他[birth_date]生，生日是[birth_date]。", []),
    ("农历腊月十八出生。", "[birth_date]出生。", []),
    ("born in '61, or on christmas day", "born in [birth_date], or on [birth_date]", []),
    ("他民国六十四年生，生日在腊八。", "他[birth_date]生，生日在[birth_date]。", []),
    ("We met on the third of May.", "We met on the third of May.", ["third of May."]),
    ("You may first want two of the four.", "You may first want two of the four.", []),
    ("她出生在这里，住了20年，二三年没回去。", "她出生在这里，住了20年，二三年没回去。", []),
)
ADDRESSES: tuple[Case, ...] = (
    ("We met at 27 maple grove, leeds.", "We met at [address].", []),
    ("He rents hauptstrasse 9 in 50667 köln.", "He rents [address].", []),
    ("The bag is at no. 7, second floor, orchard road.", "The bag is at [address].", []),
    ("住长宁路二百号7号楼九零三，邮编200050。", "住[address]，邮编[address]。", []),
    ("住三号楼二单元601。", "住[address]。", []),
    ("The zip code is 90210.", "The zip code is [address].", []),
    ("It is 22 oak avenue, I think.", "", ["22 oak avenue"]),
    ("Meet on willow lane, in flat 4c.", "Meet on willow lane, in flat 4c.", ["willow lane", "flat 4c"]),
    ("The train to 80331 munich.", "", ["80331 munich"]),
    ("a 5 minute drive, 3 miles down the road, on main street, 10000 steps in 20000 people", "", []),
)
LAST_DIGITS: tuple[Case, ...] = (
    ("尾号3345的卡，手机后四位是七七八八。", "尾号[number]的卡，手机后四位是[number]。", []),
    (
        "her card ends in 4431, the last four digits are 4431",
        "her card ends in [number], the last four digits are [number]",
        [],
    ),
    ("the iban is ****7712", "the iban is ****[number]", []),
    ("我的微信是abc_li88。", "我的微信是[number]。", []),
    ("the war ended in 1945 and the last three years were good", "", []),
    ("in [address] 304", "", ["304"]),
    ("证号是五三零一零二七七，二零一九年来的。", "", ["五三零一零二七七"]),
)


@each_case("case", HANDLES + INITIALS + CHINESE + BIRTHS + ADDRESSES + LAST_DIGITS)
def test_text_is_cleared_of_what_is_sure_and_the_rest_is_listed(case: Case) -> None:
    text, cleared, undecided = case
    left = Deidentifier(PersonFacts(NAMES), detector()).clear(text)
    assert left == (cleared or text)
    assert [each.text for each in find_undecided(left)] == undecided
