"""Patterns of sentences without anything worth storing, in English and Chinese, for case-folded text."""

import re

_LEAD = r"^(?:(?:please|pls|ok|okay|now|and|so|well|hey|also|then|just|oh|no|yes|could you|can you|would you)[, ]+)*"
_END = r"\W*$"

# "Remember that …": the rest is stored. `remember to` and a bare `remember` do not count.
ASKED_TO_STORE = re.compile(
    r"^\W*(?:(?:please|pls|ok|okay|also|and|so|hey|well|could you|can you)[, ]+)*"
    r"(?:(?:remember|note|don['\u2019]t forget|do not forget|keep in mind|make a note|save|store|record)(?: this| it)?"
    r"(?: that\b|\s*[:,]|(?= (?:i|i['\u2019]m|my|we|our|the|she|he|they)\b))|for the record[,:]?|fyi[,:]?)\s*"
    r"|^\W*(?:请|請|麻烦|帮我|替我|你要?|那就?|也)*(?:记住|記住|记下来?|記下|记一下|記一下|记得|别忘了|不要忘了"
    r"|别忘记|备注一下)"
    r"(?:这[件个]事|一下)?[\uff0c,:\uff1a\u3002\s]*",
    re.IGNORECASE,
)
COMMAND = re.compile(
    rf"{_LEAD}(?:summari[sz]e|list|show|tell|give|find|search|look up|look for|forget|delete|remove|erase|write|draft"
    r"|translate|explain|describe|help|stop|start over|repeat|compare|calculate|suggest|recommend|recap|remind"
    r"|undo|edit|go ahead|export|open|close|continue|go on|try again|answer|say|ask"
    r"|let's (?:talk|see|start|move|go over|begin)|remember"
    r"(?! to ))\b"
    r"|^(?:(?:请|請)(?!叫我|喊我|称呼我)|麻烦|帮我|帮忙|给我|替我|总结|總結|概括|归纳|列出|列一下|告诉我|告訴我|说说|说一下|讲讲|讲一下"
    r"|介绍一下|忘掉|忘记我|忘了我"
    r"|删除|删掉|刪除|翻译|翻譯|解释|解釋|查一下|查找|找一下|搜索|推荐|推薦|写一|寫一|提醒我|继续|重来|再说一遍"
    r"|换个话题|重复)"
)
REMARK_ON_TALK = re.compile(
    r"^(?:you(?:'re| are| were|'ve| have)? (?:wrong|right|mistaken|correct|not|funny|great|helpful|welcome|misunderst"
    r"|forgot|already|said|told|just|don't|didn't|can't|know)\b"
    r"|that(?:'s| is| was|'s) (?:not|wrong|right|correct|all|it|enough|what|a good|better|the (?:question"
    r"|answer|wrong))\b"
    r"|(?:no[, ]+)?(?:i (?:was |am |'m )?(?:just |only )?(?:ask|asked|asking|mean|meant|meaning|testing|kidding|joking"
    r"|wonder|wondering|curious)\b)"
    r"|(?:well[, ]+)?i (?:don't|do not) know\W*$"
    r"|i (?:don't|do not|didn't) (?:understand|get (?:it|that)|mean)\b|i (?:already )?(?:told|asked) you\b"
    r"|i (?:have|'ve|'ve got|got) (?:a|an|another|one more|some|a few|a quick) questions?\b"
    r"|i(?:'d| would)? (?:want|like|love|need)(?: you)? to (?:ask|know|talk|chat|hear|see (?:what|if|how)|test|try this"
    r"|tell you)\b|let me (?:ask|rephrase|think|try|know|tell|explain|see)\b|never ?mind\b|forget it\b"
    r"|this is (?:just )?"
    r"an? (?:test|question)\b|(?:just )?testing\b|one more (?:thing|question)\b|(?:good|nice|great) (?:answer"
    r"|question|job"
    r"|work)\b|(?:i'll|i will) (?:think|let you|tell you|ask|try (?:it|that)|check|see|get back|be (?:back"
    r"|right)|come back)\b"
    r"|here(?:'s| is) (?:what|a|the|my) (?:question|list|thing)|as i said\b|by the way\W*$"
    r"|talk (?:to you )?(?:later|soon)|have a (?:nice|good|great|lovely)\b"
    r"|i (?:think|guess|hope|bet) it(?:'s going to| will|'ll| might) (?:rain|snow|be (?:cold|hot|warm|sunny))\b"
    r"|(?:what )?(?:nice|lovely|awful|terrible|beautiful) (?:weather|day)\b"
    r"|it(?:'s| is) (?:raining|snowing|sunny|cold|hot)\W*$)"
    r"|^(?:今天|外面|这)?(?:的)?天气(?:真|很|太|好|不错|挺|有点)|^(?:今天|外面)?(?:在|又)?(?:下雨|下雪)了?\W*$"
    r"|^我?不是(?:这个|那个|这|那)意思|^我(?:只是|就是|只|在)+(?:测试|试试|试一?下|开玩笑|随便问)"
    r"|^(?:我(?:想|要|还想|再)?(?:问|请问|知道|了解)|我问的|我的意思|我是说|我说的|你(?:说错|错了|弄错|搞错"
    r"|不对|说得|真|好厉害|很|太|没|不懂"
    r"|记错|刚才|知道)|不是这个|不是这样|听不懂|没听懂|算了|测试|换个问题|再问|回答(?:得|错|对)|这(?:个"
    r"|是)?(?:测试|问题|回答)|随便(?:问|聊)"
    r"|有(?:个|一个|几个)问题|我有(?:个|一个|几个)问题|我(?:再)?想想|我(?:去)?试试|回头(?:聊|说|见)"
    r"|一会儿?(?:聊|见)|下次(?:聊|见))"
)
_FEELINGS = (
    "fine|good|ok|okay|great|tired|bored|back|here|sorry|happy|glad|sure|confused|curious|done|ready|well"
    "|excited|hungry"
    "|sleepy|busy|alright|impressed|listening|afraid so"
)
FEELING_NOW = re.compile(
    rf"^(?:well |and |oh )?(?:i'm|i am|i feel|we're|feeling) (?:\w+ ){{0,2}}(?:{_FEELINGS})(?: (?:now|today|too"
    rf"|thanks|thank you))?{_END}"
    rf"|^我(?:现在|今天|也|都)*(?:很|挺|还|有点|好|太|非常|真)?(?:好|不错|可以|累|困|无聊|饿|开心|高兴|难过|忙"
    rf"|好奇|在)(?:了|呢|啊|的|吧)*{_END}"
)
REACTION = re.compile(
    r"^(?:that|this|it|these|those|they)(?:'s| is| was| sounds?| looks?| seems?| makes?| would be| will be"
    r"|'ll be| are| were)"
    r" (?:\w+ ){0,3}\w+\W*$|^(?:sounds?|looks?|seems?|makes?) \w+(?: \w+){0,3}\W*$|^what an? |^how (?:\w+)\W*$"
    r"|^(?:good|great|nice|well) (?:to|for|luck|point|idea|one|call|done)\b|^(?:thanks|thank|thx|cheers)\b"
    r"|^(?:hi|hello|hey|good (?:morning|evening|night|afternoon))\b[\w\s,']{0,24}\W*$"
    r"|^(?:我(?:也)?(?:觉得|认为)?)?(?:这|那|它)(?:个|样|些|听起来|真|太|很|是|也|就)?.{0,6}(?:好|棒|对|错|行"
    r"|可以|不错|有意思|好玩|厉害|奇怪|没关系)"
    rf"(?:了|啊|的|吧|呢|极了)*{_END}|^(?:谢谢|多谢|感谢|谢啦|辛苦了|你好|您好|早上好|早安|上午好|中午好|晚安|晚上好|下午好"
    rf"|再见|拜拜)|^帮(?:了|我)*大忙|^很?高兴(?:认识|见到|遇到)你|^(?:听起来|看起来|真的?|太).{{0,8}}{_END}"
)
# A greeting or thanks before a statement: "Hi Anna, my dog …", "你好，我上个月…". A name may follow it.
OPENING = re.compile(
    r"^\W{0,8}(?:(?:hi|hello|hey|good (?:morning|evening|afternoon)|thanks|thank you|thx|cheers|ok|okay)"
    r"(?: (?:there|all|everyone|again|so much|very much|a lot|[a-z]{2,20}))?[,!\uff0c\uff01\u2014-]\s{0,4}"
    r"|(?:ok|okay),? so\s"
    r"|(?:你好|您好|大家好|早上好|上午好|中午好|下午好|晚上好|嗨|哈喽|谢谢(?:你|您)?|多谢|感谢|好的)[啊呀呢]?"
    r"[,!\uff0c\uff01]\s{0,4})",
    re.IGNORECASE,
)
FAREWELL = re.compile(
    r"^(?:good ?night|good ?bye|bye|see you|have a (?:nice|good|great|lovely))\b|^(?:晚安|再见|拜拜|回头见|明天见)"
)
GREETING = re.compile(
    r"^(?:hi|hello|hey|(?:good )?(?:morning|evening|afternoon))\b"
    r"|^(?:你好|您好|大家好|早上好|早安|上午好|中午好|晚上好|下午好|嗨|哈喽)"
)
THANKS = re.compile(r"\b(?:thanks|thank you|thx|cheers)\b|谢谢|多谢|感谢|谢啦|辛苦了")
# A pronoun instead of the thing: "I love it."
BARE_REFERENCE = re.compile(
    r"^(?:i|we)(?:'d|'ll|'m| would| will| do| did| really| also| just| always| still| too| never| don't| didn't"
    r"| can't)*"
    r" (?:like|love|hate|enjoy|prefer|want|need|think|know|hope|guess|agree|see|get|tried|try|bet|do|did|can|will|did)"
    rf"(?: (?:it|that|this|them|so|those|these|one|too|there|here|a lot|very much|of|about))*{_END}"
    rf"|^(?:我|我们)(?:也|都|很|真|最|不|还)*(?:喜欢|讨厌|知道|同意|觉得是?|明白|懂|想|要|希望)(?:它|这个|那个"
    rf"|这样|那样|是|如此)?(?:了|啊|的|吧)*{_END}"
)
PRONOUN_START = re.compile(
    r"^(?:it|that|this|those|these|they|there|here|you|your|he|she|so|but|and)\b|^(?:这|那|它|你|您|他|她|就|但)"
)
TRAILING_QUESTION = re.compile(
    r"[,;\uff0c\uff1b\u2014-]\s*(?:(?:and|but|so|any)\b\s*)*(?:(?:what|how|where|when|who|why|which|do you|does"
    r"|can you|could"
    r"|should|would you|is there|are there|any|have you|will you)\b|什么|怎么|哪|谁|为什么|多少|你(?:觉得|呢"
    r"|知道|有|能|会)|有没有|能不能|该)",
    re.IGNORECASE,
)
# The end of a clause, and a sentence that begins with a condition.
CLAUSE_END = re.compile(r"[,;\uff0c\uff1b](?!\d)")
CONDITION = re.compile(
    r"^\W*(?:if|when|whether|suppose|should|would|could|can|如果|要是|假如|假设|万一|当)", re.IGNORECASE
)
# A sentence that gives the reason of the sentence before.
REASON = re.compile(
    r"^\W*(?:because|since|that(?:['\u2019]s| is) (?:why|because)|the reason)\b|^\W*(?:因为|由于|原因是|理由是)",
    re.IGNORECASE,
)
# The break between two lines, of which the second is a list item.
LIST_ITEM = re.compile(r"\n\s{0,9}(?:[-*\u2022\u00b7]|\d{1,3}[.)])\s{1,9}$")
