"""Patterns of sentences of each kind, in English and Chinese. Data for `kinds`; matched against case-folded text."""

import re


def _join_patterns(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


# "I" or "we" with the words that may precede the verb.
_I = (
    r"\b(?:i|we)(?:'ve|'m|'d|'ll|'re)?"
    r"(?: (?:am|are|have|will|would|do|really|also|just|always|still|both|absolutely|totally|never))*"
)
_WHO = r"(?:我们?|他们?|她们?|[\u4e00-\u9fff]{2,4})"

_AUXILIARY = (
    "is|am|are|was|were|do|does|did|can|could|will|would|should|has|have|had|must|may|might"  # before its subject
)
_OPENING = r"^(?:and |but |so |ok |okay |well |oh |hey |wow |also )*"
QUESTION_START = _join_patterns(
    rf"{_OPENING}(?:what|wat|when|where|who|whom|whose|which|why|how)"
    rf"(?:'s|s|'re|'d|'ve| (?:{_AUXILIARY})| about| many| much| long| old| often| far| come)\b",
    # "what big things do I have", "which animals we got": without a mark, the kind of thing is asked for first.
    rf"{_OPENING}(?:what|wat|which|whose)(?: [\w'-]+){{1,4}}? (?:{_AUXILIARY})(?:n't)? "
    r"(?:i|you|we|they|he|she|it|there|my|our)\b",
    rf"{_OPENING}(?:what|wat|which) \w+ (?:i|you|we|they)(?:'ve)? (?:got|have|need)\b",
    r"^(?:and |but |so |ok |okay |well |oh |hey )*(?:do|does|did|can|could|would|will|are|is|was|were|have|has"
    r"|should|shall|may)"
    r"(?:n't)? (?:you|i|we|they|he|she|it|there|this|that|my|your|the)\b",
    r"^(?:any idea|(?:tell|remind) me (?:what|when|where|who|which|why|how|about)|(?:list|sum up) my)\b",
    # Without a mark: "who borrowed my ladder", "is Tom coming", "what happened to my keys".
    rf"{_OPENING}(?:who|whom) (?!knows?\b|cares?\b|wants?\b)\w+(?: [\w'-]+){{1,8}}\W*$",
    rf"{_OPENING}whose \w+(?: [\w'-]+){{1,6}}\W*$",
    rf"{_OPENING}(?:what|which)(?: (?!an?\b)\w+)? (?:happened|goes|went|broke|made|makes|caused|kind|sort"
    r"|type|size|colou?r|day|time)"
    r"(?: [\w'-]+){1,8}\W*$",
    rf"{_OPENING}(?:where|when|how) (?:my|our|the|his|her|their) (?:[\w'-]+ ){{0,4}}(?:at|go|going|went)?\W*$",
    rf"{_OPENING}(?:is|are|was|were|does|did|has)(?:n't)? "
    r"(?!(?:in|at|on|to|from|with|by|for|very|so|too|not|no|an?|all|one|two|three|four|five|six|\d+|many|much"
    r"|some|more|always|never|been|had|\w+ing|\w+ed)\b)[\w']+(?: [\w'-]+){1,8}\W*$",
    r"^any(?:thing|one|body)?\b(?!.*\b(?:is|are|was|works?|will|would|can|goes|helps?)\b)",
)
_ASKED_HAN = "什[么麼]|怎[么麼]|啥|咋|[干幹]嘛|哪[里裡儿兒個个些几幾不行]|谁|誰|多少|几[点个岁月号只条口位次]"
CHINESE_QUESTION = _join_patterns(
    r"(?<![什怎那这多要])[么麼]\W*$",
    r"^(?:请问|請問|什么|什麼|怎么|怎麼|怎样|为什么|為什麼|哪|谁[^都也]|多少|多久|何时|是否|几[点个岁月号]|有没有|是不是|能不能|会不会|要不要)",
    rf"[你您我咱](?:们|們)?[^\uff0c,]{{0,14}}(?:{_ASKED_HAN}|为什么)(?![都也的])",
    r"(?:是不是|有没有|能不能|会不会|要不要|好不好|行不行|对不对)\W*$",
    r"哪(?:[儿里兒裡]|边|个|天|家|一?[个天家])?(?:了|去了|啊|呢|呀|来着)*\W*$",
    r"(?<![时動动好爱])([^\W\d三差得])(?<![好了时])[不没]\1(?![^\uff0c,]{0,6}都)[^\uff0c,]{0,10}\W*$",
    rf"(?:{_ASKED_HAN}|多[久高大重远])(?:名字|时候|地方|人|东西|事)?(?:嘛|呢|呀|啊|来着|來著)?\W*$",
)
CHINESE_NOT_ASKING = _join_patterns(
    r"不知道|不记得|忘[记了]|至于|看看|知道.{0,100}(?:什么|谁|哪|怎么)",
    r"(?:什么|啥|谁|哪[里儿个])[^\uff0c,]{0,4}[都也]",
    r"没有?(?:什么|什麼|啥|谁|多少|哪)|[点些個个](?:什么|什麼|啥)|(?<![干幹做])(?:什么|什麼|啥)的|不管|不论|无论|無論|随便|隨便|任何",
)

SMALL_TALK = _join_patterns(
    r"^(?:(?:hi|hey|hello|yo|good (?:morning|evening|night|afternoon)|bye|goodbye|see (?:you|ya)|take care"
    r"|thanks?(?: you)?|thank"
    r"|thx|cheers|congrats|congratulations|welcome|sorry|wow|cool|nice|great|awesome|amazing|haha+|lol|ok|okay"
    r"|sure|yes|yeah"
    r"|yep|no|nope|oh|absolutely|definitely|totally|exactly|sounds? (?:good|great|fun|like)|good (?:luck|job"
    r"|idea|point)|no (?:problem|worries)"
    r"|you'?re welcome|that(?:'?s| is) (?:really |so |very |just )*"
    r"(?:great|awesome|amazing|cool|nice|so|really|wonderful|fantastic|good|right|true)"
    r"|long time no see|(?:so |really |very )*glad (?:you|it|that|to)|check (?:it|this|that|them) out"
    r"|here'?s (?:a|the|my|one) (?:pic|photo|picture|shot)"
    r"|nice to (?:meet|see|hear)|great to (?:meet|see|hear)|good to (?:see|hear)|so glad|glad to hear"
    r"|i (?:see|agree|know)(?=(?: (?:that|it|too|right|what you mean|how (?:you|it) feels?|exactly))*(?:\W*$"
    r"|[,.!]))|me too"
    r"|talk (?:to you )?(?:soon|later)|let me know|keep (?:it )?up|way to go|happy for you|what a)\b)",
    r"^(?:你好|您好|大家好|早上好|早安|晚上好|晚安|下午好|嗨|哈喽|喂|再见|拜拜|谢谢|多谢|感谢|不客气|不用谢|没关系|没事|对不起"
    r"|抱歉|好的|好啊|好吧|嗯|哦|是的|对的|对啊|哈哈|太好了|太棒了|真棒|真不错|不错|恭喜|加油|当然|没问题|明白了|知道了|收到|原来如此|我也是|祝你)",
)

PROFILE = _join_patterns(
    r"\bmy name(?:'s| is)\b",
    r"\b(?:i'm|i am|she's|he's|she is|he is) (?:an? )?[0-9]{1,3} ?(?:years? old|yo)\b",
    r"\b(?:i'm|i am|we're|we are) (?:originally |both )?from\b",
    r"\bi (?:live|work|grew up|was born|was raised)\b",
    # A habit in one word: "I don't cook", "I ski". Words of the moment are none: "I see", "I don't mind".
    r"^(?:(?:no|well|sorry|oh)[, ]+)?i (?:(?:don't|do not|never|can't|cannot|no longer|rarely|only) )?"
    r"(?!(?:know|knew|mind|care|think|thought|understand|remember|agree|disagree|see|saw|get|got|believe|follow|recall|bother"
    r"|worry|wonder|guess|hope|do|did|can|could|will|would|wish|forgot|forget|promise|swear|try|insist|mean|meant|said|say|give"
    r"|quit|stop|lost|won|left|went|go|came|ate|slept|am|was|have|had|too|also|just|really|suppose|doubt|apologi[sz]e|refuse"
    r"|object|lie|want|need|wait|pass|bet|dare|laugh|cry|beg)\b|\w+ed\b)"
    r"[a-z]{3,}(?: at all| any ?more| either)?[.!]?$",
    r"\b(?:i'm|i am) (?:an?|the) (?:\w+[ -]){0,3}(?:engineer|teacher|doctor|nurse|student|designer|artist|writer"
    r"|lawyer|manager"
    r"|developer|programmer|chef|mother|mom|father|dad|parent|scientist|researcher|counselor|musician"
    r"|photographer|vegetarian"
    r"|vegan|christian|muslim|woman|man|widow|widower|veteran|nomad|freelancer|founder|accountant|driver|farmer)\b",
    # Who somebody is, in a word: "I'm a plumber", "we're vegan".
    r"^(?:(?:no|well|oh|yes)[, ]+)?(?:i'm|i am) an? (?!(?:bit|little|lot|mess|fan|big|huge|idiot|fool|ghost|genius"
    r"|wreck|sucker|failure|disaster)\b)[a-z]{4,}(?: [a-z]+)?[.!]?$",
    r"\b(?:i'm|i am|we're|we are) (?:vegetarian|vegan|divorced|married|engaged|widowed|separated|pregnant|left-handed"
    r"|colou?r-?blind|deaf|asthmatic|epileptic|c(?:o)?eliac|lactose[- ]intolerant|gluten[- ]free)\b",
    r"\bmy (?:birthday|job|hometown|age|pronouns|nationality|native language|phone|email|address|blood type)\b",
    r"\bi(?:'m| am) (?:allergic|married|single|divorced|engaged|retired|left-handed|gay|lesbian|transgender"
    r"|trans|bisexual|diabetic)\b",
    r"\bi have (?:an? |one |two |three |four |five |[0-9]+ )(?:\w+ )?(?:kids?|children|sons?|daughters?"
    r"|brothers?|sisters?|dogs?|cats?|pets?)\b",
    r"我(?:的名字|叫|姓|是[\u4e00-\u9fff]{0,6}(?:人|师|生|员|家|者)(?:\W|$)|今年[0-9一二三四五六七八九十]+岁|住在|来自|出生|的生日|的工作|的职业|对.{1,6}过敏)",
    r"我(?:已婚|未婚|单身|离婚|结婚了|有[一两二三四五六0-9]+[个只条](?:孩子|儿子|女儿|哥哥|姐姐|弟弟|妹妹|猫|狗))",
    r"我在.{1,12}(?:工作|上班|上学|读书)",
)
GOAL = _join_patterns(
    rf"{_I} (?:want|wanna|plan|hope|intend|aim|wish|dream)(?:s|ed|ing)? (?:to|of|for|on)\b",
    rf"{_I} (?:going to|gonna|planning|hoping|aiming|trying to|working (?:on|towards?)|saving (?:up )?for"
    rf"|looking forward|thinking (?:of|about)|determined|training for)",
    r"\b(?:i|we)'?(?:d|(?: would)) (?:like|love) to\b",
    r"\b(?:i|we)(?:'ll| will| need to| have to| must| should)\b",
    r"\bmy (?:goal|dream|plan|aim|ambition|resolution|target)s?\b",
    r"\b(?:wants|plans|hopes|intends|aims|decided|is going|is planning|is hoping) to\b",
    r"(?:我|他|她)们?(?:很|也|一直|真的|正)?(?:想要?|打算|计划|希望|准备|决定|要去|要学|梦想)|(?:目标|梦想|计划)(?:是|就是)|我.{0,8}(?:明年|下个月|下周|明天"
    r"|以后).{0,4}(?:要|想|会|打算)",
)
PREFERENCE = _join_patterns(
    rf"{_I} (?:like|love|enjoy|prefer|adore|hate|dislike|fancy|can't stand|don't like|don't enjoy|fond of|into"
    rf"|a (?:big |huge )?fan of)",
    r"\b(?:i|we) (?:don't|do not|can't|cannot) (?:like|enjoy|stand|eat|drink|love|want)\b",
    r"\bmy fav(?:ou?rites?)?\b|\bfavou?rite\b.{0,200}\bis\b",
    r"\b(?:she|he|they|[a-z]+) (?:really |also |always )?(?:likes|loves|enjoys|prefers|hates|dislikes)\b",
    r"\bi(?:'d| would) rather\b|\b(?:is|are) my (?:passion|thing|jam)\b",
    rf"{_WHO}(?:最|很|非常|特别|也|都|真的|比较|更|一直|不|不太|挺|超)*(?:喜欢|讨厌|爱吃|爱喝|爱看|爱听|偏爱|热爱|喜爱|受不了|不吃|不喝|钟爱)",
    r"最爱|宁愿|宁可|爱好是",
)
EVENT = _join_patterns(
    r"\b(?:yesterday|tonight|last (?:night|week|month|year|weekend|spring|summer|fall|autumn|winter|monday"
    r"|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r"|(?:a few|few|[0-9]+|two|three|several|a couple of|a|an) (?:days?|weeks?|months?|years?|hours?"
    r"|nights?) ago|this (?:morning|afternoon|weekend|week|month)"
    r"|the other (?:day|night|week)|earlier today|recently|just now|on (?:monday|tuesday|wednesday|thursday"
    r"|friday|saturday|sunday)"
    r"|in (?:january|february|march|april|may|june|july|august|september|october|november|december|(?:19"
    r"|20)[0-9]{2}))\b",
    rf"{_I} (?:went|visited|met|attended|bought|moved|started|finished|joined|signed up|ran|celebrated|graduated"
    rf"|took|made|got|gave"
    r"|saw|won|lost|flew|drove|hiked|camped|painted|watched|adopted|passed|applied|found|booked|came back"
    r"|returned|read|broke|tried|had)\b",
    r"\b(?:she|he|they) (?:went|visited|met|attended|bought|moved|started|finished|joined|celebrated|graduated"
    r"|won|got married|was born|died|passed away)\b",
    r"昨天|前天|今天|刚才|刚刚|上周|上个?月|上星期|去年|前年|最近|那天|周末|(?<![0-9一二三四五六七八九十几两])[0-9一二三四五六七八九十几两]+(?:天|周|个?月|年|小时)(?:前|以前|之前)",
    r"(?:19|20)[0-9]{2}年|[0-9]{1,2}月[0-9]{1,2}[日号]",
    rf"{_WHO}.{{0,6}}(?:去了|参加了|买了|见了|遇到了|搬到|开始了|完成了|毕业了|结婚了|生了|看了|吃了|赢了|收到了|到了)",
)
