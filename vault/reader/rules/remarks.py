"""Patterns of sentences without anything worth storing, in English and Chinese, for case-folded text."""

import re

_LEAD = r"^(?:(?:please|pls|ok|okay|now|and|so|well|hey|also|then|just|oh|no|yes|could you|can you|would you)[, ]+)*"
_END = r"\W*$"
_KIN = (
    "爸|妈|父|母|爷|奶|外公|外婆|姥|哥|弟|姐|妹|老公|老婆|丈夫|妻子|爱人|先生|太太|儿子|女儿|孩子|娃|男友|女友|男朋友|女朋友|朋友|同事"
    "|同学|室友|老板|领导|邻居|老师|叔|伯|舅|姑|姨|侄|孙|岳父|岳母|公公|婆婆|[猫狗]"
)
_ITS = rf"(?!(?:我|我们|咱)?(?:们?家|家里)?的?(?:{_KIN}))"  # 给我女儿报了班 tells what was done for somebody

# "Remember that …", "add: …": the rest is stored. `remember to` and a bare `remember` do not count.
ASKED_TO_STORE = re.compile(
    r"^\W*(?:(?:please|pls|ok|okay|also|and|so|hey|well|could you|can you)[, ]+)*"
    r"(?:(?:remember|note|don['\u2019]t forget|do not forget|keep in mind|make a note|save|store|record|memori[sz]e)"
    r"(?: (?:this|it|down))?(?: (?:to|in) (?:my|your|the) (?:memory|memories|notes))?"
    r"(?: that\b|\s*[:,\uff1a\uff0c]|(?= (?:i|i['\u2019]m|my|we|our|the|she|he|they)\b(?! (?:file|screen"
    r"|document)s?\b)))"
    r"|add(?: (?:this|it|(?:a |one )?(?:new )?(?:memory|note|fact|entry)))?(?: (?:to|in) (?:my|your"
    r"|the) (?:memory|memories|notes))?"
    r"(?: that\b|\s*[:\uff1a]|(?= (?:i|i['\u2019]m|my|we|our)\b.{1,80}\b(?:is|am|are|was|were|have|has|like"
    r"|live|work)\b))"
    r"|(?:new (?:memory|note|fact)|memo|note to self)\s*[:\uff1a]"
    r"|for the record[,:]?|fyi[,:]?)\s*"
    r"|^\W*(?:请|請|麻烦|帮我|替我|给我|你要?|那就?|也)*(?:记住|記住|记下来?|記下|记一下|記一下|记得|别忘了|不要忘了"
    r"|别忘记|备注一下|(?:添加|新增|增加|加上?|存|保存|记录|記錄|录入)(?:一下|[一1]?[条个](?:新的?)?(?:记忆|笔记|备忘))?(?=\s*[:：])"
    r"|(?:添加|新增|增加|加|存|保存|记录|录入)[一1]?[条个](?:新的?)?(?:记忆|笔记|备忘)|备忘(?=[:：]))"
    r"(?:这[件个]事|一下)?[\uff0c,:\uff1a\u3002\s]*",
    re.IGNORECASE,
)
# A reminder is a goal of who asks for it, also in the form of a question.
REMINDER = re.compile(
    rf"{_LEAD}(?:will you )?(?:please )?(?:kindly )?(?:(?:set|make|create|add) (?:me )?a reminder\b|(?:don't"
    r"|do not) let me forget to\b"
    r"|remind (?:me|us)(?! (?:what|when|where|who|whom|which|why|how|if|whether)\b)"
    r"(?= (?:to|that|of|not to|again|in|on|at|by|before|after|every|next|tomorrow|tonight|this|the day|about .{1,200}?"
    r"\b(?:on|at|in|by|before|tomorrow|tonight|next|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b)))"
    r"|^(?:请|請|麻烦|帮我|记得|别忘了|到时候?|到点|你|能|可以|能不能|可不可以|要|再|也)*(?:.{0,10}?)提醒(?:一下)?(?:我们?|咱们?)(?!.{0,6}(?:什么|谁|哪|几点))\S{2}"
)
_NOUNS = (  # commands that are the first word of a name for something: "Show starts at 8"
    "help|show|search|close|open|start|stop|answer|list|export|edit|say|repeat|find|draft|describe|compare"
)
COMMAND = re.compile(
    rf"{_LEAD}(?!(?:{_NOUNS})(?: (?!me|my|the|an?|all|any|every|each|what|who|which|that|this|these|us|it|out"
    rf"|up|for\b)[\w'-]+){{0,3}}"
    r" (?:is|are|was|were|has|have|had|will|starts?|begins?|opens?|closes?|ends?|moved|arrived|arrives?|costs?)\b)"
    r"(?:summari[sz]e|list|show|tell|give|find|search|look up|look for|forget|delete|remove|erase|write|draft"
    r"|translate|explain|describe|help|stop|start over|repeat|compare|calculate|suggest|recommend|recap"
    r"|remind (?:me|us) (?:what|when|where|who|whom|which|why|how|about)"
    r"|undo|edit|go ahead|export|open|close|continue|go on|try again|answer|say|ask"
    r"|let's (?:talk|see|start|move|go over|begin)|remember"
    r"(?! to ))\b"
    rf"|^(?:(?:请|請)(?!叫我|喊我|称呼我|了|假|客|教)|麻烦(?![的了事])|帮我{_ITS}|帮忙(?!的)|给我{_ITS}(?!们|的|了)|替我{_ITS}"
    r"|(?:总结|總結|翻译|翻譯|解释|解釋|重复|继续)(?!\w{0,6}[是已定]|[会员费官社稿家证公机工器权教])|概括|归纳|列出|列一下|告诉我(?![妈爸])|告訴我|说说|说一下|讲讲|讲一下"
    r"|介绍一下|忘掉|忘记我|忘了我"
    r"|删除|删掉|刪除|查一下|查找|找一下|搜索|(?:推荐|推薦)(?!信|人|\w{0,6}[是已])|写一|寫一|重来|再说一遍"
    r"|换个话题)"
)
# Words that lead into a statement: "You know, I am diabetic", 你知道我有哮喘, "one more thing: …".
LEAD_IN = re.compile(
    r"^\W*(?:(?:you (?:already |should |must |probably )?know|as you (?:may |already )?know|just so you know"
    r"|by the way|btw"
    r"|(?:one|another|two) (?:more|other)? ?(?:last |quick )?things?|anyway|honestly|to be honest|frankly"
    r"|like i said|as i (?:said|told you|mentioned)|i (?:already )?told you"
    r"|i(?: just)? wanted to (?:say|tell you)"
    r"|let me tell you|guess what|speaking of which)\s*[,:\uff0c\uff1a\u2014-]\s*"
    r"|(?:(?:you (?:already )?know|i (?:already )?told you|i(?: just)? wanted to (?:say|tell you)"
    r"|let me tell you)(?: that)?"
    r" (?=(?:i|i'm|i've|my|we|we're|our)\b)))"
    r"|^\W*(?:你(?:也|都|已经|应该)*知道(?:的|吗|吧)?|顺便说一?下?|顺便(?:提一下)?|对了|话说(?:回来)?|跟你说(?:一下|个事)?|告诉你(?:一下|个事)?"
    r"|说实话|老实说|我跟你(?:说|讲)|我(?:之前|刚才)?(?:说过|告诉过你)|还有(?:一件事|个事)?|另外)(?:[\uff0c,:\uff1a]\s*|(?=我|咱))",
    re.IGNORECASE,
)
_OF_TALK = (  # after "I want to ask": what is asked, not who is
    r"(?=\W*$|[^\w\s]|\s(?:you\b|to you|with you|about|something|some|if|whether|how|what|where|when|why|who|which|more"
    r"|an?\b|again|it\b|that\b|this\b))(?! (?:an?) \w+ (?:to|for)\b)"
)
_STOP = r"(?=\W*$|,| (?:you|again|later|soon|now|tomorrow|then|so|if|what|whether|how|because)\b)"
REMARK_ON_TALK = re.compile(
    r"^(?:you(?:'re| are| were|'ve| have)? (?:wrong|right|mistaken|correct|not|funny|great|helpful|welcome|misunderst"
    r"|forgot|already|said|told|just|don't|didn't|can't|know)\b"
    r"|that(?:'s| is| was|'s) (?:not|wrong|right|correct|all|it|enough|what|a good|better|the (?:question"
    r"|answer|wrong))\b"
    r"|(?:no[, ]+)?i (?:was |am )?(?:just |only )?(?:mean|meant|meaning|kidding|joking|wonder|wondering|curious)\b"
    r"|(?:no[, ]+)?(?:i'm|i am|i was|just) (?:just |only )?(?:curious|kidding|joking|wondering|testing"
    + _END
    + r"|asking\b)"
    rf"|i(?: am|'m| was)? (?:just |only )?(?:ask|asked|asking|testing){_STOP}"
    r"|(?:well[, ]+)?i (?:don't|do not) know\W*$"
    r"|i (?:don't|do not|didn't) (?:understand|get (?:it|that)|mean)\b|i (?:already )?(?:told|asked) you\b"
    r"|i (?:have|'ve|'ve got|got) (?:a|an|another|one more|some|a few|a quick) questions?\b"
    rf"|i(?:'d| would)? (?:want|like|love|need)(?: you)? to (?:ask|know|talk|chat|hear){_OF_TALK}"
    r"|i(?:'d| would)? (?:want|like|love|need)(?: you)? to (?:see (?:what|if|how)|test"
    + _END
    + r"|try this|tell you)\b"
    r"|let me (?:ask|rephrase|think|try|know|tell|explain|see)\b|never ?mind\b|forget it\b"
    r"|this is (?:just )?"
    r"an? (?:test|question)\b|(?:just )?testing\b|one more (?:thing|question)\b|(?:good|nice|great) (?:answer"
    r"|question|job"
    r"|work)(?=\W*$|\W+(?:thanks|thank)\b| (?:there|here|so far|on that|again)\b)|(?:i'll"
    rf"|i will) (?:think(?: about (?:it|that))?|let you|tell you|(?:ask|check){_STOP}"
    r"|try (?:it|that)|(?:check|see)(?: (?:it|that|this|them|these))?(?: out)?(?=\W*$|,| (?:what|if|how|you"
    r"|then)\b)|get back to (?:you"
    r"|this|that|it)"
    r"|be (?:right )?back(?: soon| later| in a \w+)?\W*$|be right\b|come back(?: later| soon| to (?:it|this"
    r"|that|you))?\W*$)"
    r"|here(?:'s| is) (?:what|a|the|my) (?:question|list|thing)|as i said\b|by the way\W*$"
    r"|have a (?:nice|good|great|lovely)\b"
    r"|i (?:think|guess|hope|bet) it(?:'s going to| will|'ll| might) (?:rain|snow|be (?:cold|hot|warm|sunny))\b"
    r"|(?:what )?(?:nice|lovely|awful|terrible|beautiful) (?:weather|day)\b"
    r"|it(?:'s| is) (?:raining|snowing|sunny|cold|hot)\W*$)"
    r"|^(?:今天|外面|这)?(?:的)?天气(?:真|很|太|好|不错|挺|有点)|^(?:今天|外面)?(?:在|又)?(?:下雨|下雪)了?\W*$"
    r"|^我?不是(?:这个|那个|这|那)意思|^我(?:只是|就是|只|在)+(?:测试|试试|试一?下|开玩笑|随便问)"
    r"|^(?:我(?:想|要|还想|再)?(?:问(?:你|您|一下|一个|下|个|问|问看|的(?:是|不))|请问)|我(?:想|要|还想)(?:问|知道|了解)(?![^，。]{0,6}[医老][生师])"
    r"|我(?:知道|了解|明白)(?:了|啊|吧|的|你)*\W*$|我问的|我的意思|你(?:说错|错了|弄错|搞错"
    r"|不对|说得|真|好厉害|很|太|没|不懂"
    r"|记错|刚才|知道)|不是这个|不是这样|听不懂|没听懂|算了\W*$|测试(?:一下|下|而已)?\W*$|换个问题|再问|回答(?:得|错|对)|这(?:个"
    r"|是)?(?:测试|问题|回答)\W*$|随便(?:问|聊)"
    r"|有(?:个|一个|几个)问题\W*$|我有(?:个|一个|几个)问题|我(?:再)?想想|我(?:去)?试试(?:看|吧)?\W*$"
    r"|这是(?:个|一个)?(?:测试|问题))"
)
# The end of a talk, also after "right," or 好嘞: "ok, gotta run", 先这样吧.
PARTING = re.compile(
    r"^(?:(?:right|ok|okay|alright|all right|well|anyway|so|yes|yeah|cool|great|good|fine|perfect|thanks"
    r"|thank you|no|nope|hm+|sure)"
    r"[,.!\s\u2014-]+)*(?:i(?:'ve|'m| have| really)? ?)?"
    r"(?:(?:gotta|got to|have to|need to|should|must|better|will|'ll|going to|gonna|off to|(?:am |'m )?heading) ?"
    r"(?:run|go|dash|leave|head (?:out|off)|jet|bed|sleep|stop here|get going|be off|off|out|work)"
    r"|talk (?:to you )?(?:later|soon|tomorrow|then)|speak (?:to you )?(?:later|soon|tomorrow)|(?:catch"
    r"|see) (?:you|ya)(?: later| soon| tomorrow)?"
    r"|later|ttyl|brb|bye(?: bye)?|cya|that(?:'s| is|'ll be| will be)? ?(?:it|all|enough|do)|that'll do"
    r"|nothing (?:else|more)|all good|(?:let's )?leave it (?:here|there|at that)|we're done"
    r"|until (?:next time|tomorrow|later))"
    r"(?: (?:for (?:now|today|me)|now|then|soon|bye|thanks|thank you|later|today|everyone|all|again))*\W*$"
    r"|^(?:(?:好[嘞的啦吧了呀哒]?|行[吧了啊]?|嗯+|那(?:就|么)?|哦|ok|可以|对|没事|谢谢你?|我)[\uff0c,\u3002!\uff01\s]*)*"
    r"(?:(?:就|先)+(?:这样|到这|聊到这)(?:儿|里)?|回头(?:再)?[聊说见]|改天(?:再)?[聊说]|下次(?:再)?[聊说见]|明天(?:再)?[聊说见]|一会儿?(?:再)?[聊见]|待会儿?(?:再)?[聊说见]"
    r"|(?:先|得|要|该)+(?:忙|走|撤|下线?|睡|挂|去忙)|不[说聊]了|先不[聊说]|拜拜?|88+|没(?:有)?(?:事|别的|其他)(?:的|事)?|睡了|走了|有事先走)"
    r"(?:吧|了|啦|哈|哦|啊|呀|你|嘞|咯|再说)*\W*$"
)
# Parts of the product's own answers and contexts, pasted back: “…” [1] (you said, 2 May), and lines of JSON.
OWN_PARTS = re.compile(
    r"[\u201c\"][^\u201c\u201d\"]{0,2000}[\u201d\"] ?\[\d{1,3}\]"
    r"(?: ?[(\uff08][^()\uff08\uff09\n]{0,200}[)\uff09])?"
    r"|^[ \t>*-]{0,8}\[\d{1,3}\] [\u201c\"(\uff08].*$"
    r"|^[ \t>*-]{0,8}\{\"id\": ?\"[0-9a-f-]{36}\".*$",
    re.MULTILINE,
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
# People as the subject, who are understood together with a time: "They hand over the keys on the 5th."
PERSON_START = re.compile(r"^(?:they|he|she|there)\b|^(?:他|她)")
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
# A sentence without a subject of its own, which is about what the sentence before tells: "Costs 1,150 a month."
FRAGMENT = re.compile(
    r"^(?:(?:it |also |and |which )?(?:costs|starts|begins|opens|closes|ends|lasts|needs|comes|takes|seats"
    r"|sleeps|weighs"
    r"|leaves|arrives|includes|faces|runs (?:from|until|till|to|on|at|every)|works (?:on|with|from)"
    r"|belongs to|goes to|moves in"
    r"|due|available|located|made of|paid|booked)\b(?! (?:are|is|were)\b)"
    r"|(?:has|is|was|will be) \w"
    r"|(?:the |monthly |yearly |my )?(?:rent|price|cost|fee|fees|deposit|address|size|salary|pay|capacity|venue|start"
    r"|duration|tickets?|entry|parking|check-in|departure|arrival|gate|platform|seat|room)"
    r"(?:s? (?:is|are|costs?|starts?|at|from))?[:\s]\W*\d"
    r"|(?:only|about|around|roughly|from|until|till|every|at|on|in|for|near) [^\s,;]+(?: [^\s,;]+){0,3}$)"
)
HAN_FRAGMENT = re.compile(
    r"^(?:每?[月年周]租|租金|房租|押金|价格|价钱|学费|费用|票价|地址|电话|密码|面积|楼层|地点|时间|名字|颜色|年薪|起薪|定金|首付|月供|运费|车程"
    r"|开学|入住|交房|出发|到期|起飞|开始|结束|大概|大约|一共|总共|差不多|从|离|位于|就?在(?=[^\uff0c]{1,6}$)|叫|才|只要?|要|需要|还?带|含|花了|是(?!的)|有(?![时人些的点空]|一[天次])|每[周天月年晚早]|明年|今年|下个?[月周]|春天|夏天|秋天|冬天)"
    r"[^\uff0c,我你他她咱您]{1,24}$"
)
SPEAKS = re.compile(r"\b(?:i|we|you|he|she|they|my|our|who|what|that)\b")
# What "it" or "she" is, which is about the sentence before: "It's a girl."
NAMES_IT = re.compile(
    r"^(?:it|they|he|she)(?:'s| is| was|'re| are) (?:going to be )?(?:called |named |made of |from |in |at "
    r"|an? (?=[\w-]+$)|\d)"
    r"(?!(?:shame|pity|joke|test|pleasure|lot|mess|bit|relief|pain|start|deal|idea|plan|fun|question|problem|honou?r|miracle"
    r"|blast|dream|ride|must|challenge|experience|gem|hit|success|disaster|nightmare|delight|treat|thrill|privilege)\b)"
    r"|^(?:这|那|它|他|她)?是个?(?:男孩|女孩|儿子|女儿)$"
)
# The break between two lines, of which the second is a list item.
LIST_ITEM = re.compile(r"\n\s{0,9}(?:[-*\u2022\u00b7]|\d{1,3}[.)])\s{1,9}$")
