"""Word lists of English and Chinese for indexing and for questions. Plain data; lower case, already normalised."""

# Words without meaning for a text. Question words are not among them: a text may be about "The Who".
_STOP = """
a about above after again against all also am an and any are as at be because been before being below between both
but by can could did do does doing done down during each else ever few for from further get gets getting got had has
have having he her here hers herself him himself his i if in into is it its itself just let lets may me might more
most must my myself no nor not now of off on once only or other our ours ourselves out over own same shall she
should so some such than that the their theirs them themselves then there these they this those through to too under
until up upon us very was we were while will with would yes yet you your yours yourself yourselves
ain aren couldn didn doesn don hadn hasn haven isn ll mustn needn re shan shouldn ve wasn weren wouldn
"""
STOP_WORDS = frozenset(_STOP.split())
_QUESTION = "who whom whose what when where which why how say says said tell tells told mention mentioned"
QUESTION_WORDS = frozenset(_QUESTION.split())
QUESTION_PHRASES = r"\bhow (?:many|much|long|often|old|far|soon|big|come)\b|\bwh(?:at|ich) (?:kind|type|sort)s? of\b"

# Frequent words that make poor keywords, although people may search for them.
_DULL = """
able actually already always amazing awesome away back bit came come cool day definitely even every feel feels felt
find fine first found gave give glad go goes going gone gonna good great guess haha happened hello help hey hi hope keep
kind know last like little lol long look looking lot lots love made make makes making many maybe mean much need never
new next nice oh ok okay old one ones people please pretty put quite really right said saw say says see seem seen since
something still stuff super sure take taking talk tell thank thanks thing things think thought time today told tomorrow
took totally tried try trying two use used want wanted wants way week well went wonderful wow yeah year years yep
yesterday
"""
DULL_WORDS = frozenset(_DULL.split())

# Chinese function characters: a bigram of two of them is no index term.
FUNCTION_CHARACTERS = frozenset(
    "的了着过吗呢吧啊呀嘛哦啦么我你您他她它们这那是在有和与也都就还又很不没把被给对从到跟让为因所以而但或如若之其此个"
    "嗎過們這還與從對讓為給沒麼"
)
# Separators of content words when runs of Chinese are cut into keywords; longer ones first.
FUNCTION_WORDS = (
    r"但是|因为|所以|如果|虽然|而且|或者|然后|可以|已经|正在|觉得|知道|应该|可能|非常|真的|一个|一些|一下|这个|那个|这样|那样|"
    r"我们|你们|他们|她们|它们|自己|今天|昨天|明天|现在|时候|没有|不是|就是|还是|谢谢|你好|"
    r"[的了着过吗呢吧啊呀嘛哦啦我你您他她它们这那是在有和与也都就还又很不没把被给对从到跟让为而但或会要想去来说]"
)
CHINESE_QUESTION_WORDS = (
    r"(?:是在|在)?什[么麼][时時]候|[为為]什[么麼]|怎[么麼][样樣办辦]?|怎[样樣]|"
    r"(?:(?:[说說讲講聊]|提到|[谈談][到起]?)[过過了]?)?什[么麼]|"
    r"哪[里裡儿兒个個些位天年月次种種家]?|多少|多久|多大|多[长長]|几[个岁点号月年次天]|幾[個歲點號月年次天]|[谁誰]|"
    r"何[时時处處地]|如何|[为為]何|是否|是不是|有[没沒]有|能不能|[会會]不[会會]|[请請][问問]|[吗嗎呢]|"
    r"还(?:有|剩|要)?(?:多少|几|多久)天?|(?:多少|几)天|距?离(?=[^，。？]{1,20}还)|下一?次|下回|"
    r"现在|現在|目前|如今|到底|究竟|后来|後來|平时|平時|平常|通常|一般"
)
