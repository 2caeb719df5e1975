"""Word lists for the name patterns of vault.lexicon.entities, in English and Chinese. Plain data."""

# Words at the start of a sentence or in capitals that are no names, besides stop, dull and question words.
_ORDINARY = """
absolutely agreed ah aha alright although am and anyway appreciate are ask awesome aww bet besides both bro btw bye
cannot care catch check cheers clearly congrats congratulations considering could count crazy currently dang dear
despite did do does each either enjoy especially everybody everyone everything exactly excellent excited exciting
excuse fair fantastic finally fingers following for forget fortunately fun fyi gee get gotcha gosh guys happy hence here
hmm hold honestly hopefully how however huge i idk if imagine imho in incredible indeed inspiring instead interesting
isn jeez later lately lets listen lmao lol lucky maybe meanwhile mine moreover mostly my nah naturally nevertheless
nobody none nope nothing obviously of often oh omg once ooh oops ouch overall perfect perhaps personally plus possibly
previously probably proud recently regarding respect seriously several share should similarly simply sir so some
somebody someone sometimes soon sorry sounds speaking specifically start stay sweet terrific therefore these thx
together too tough true truly try ugh um unfortunately unless unlike usually via wait was watch weird welcome were
whatever whenever whether while whoa whoever without wonder wonderful won wow wtf yay yea yes yet yikes yo yup
add buy call change choose clean close come cook create do draw drink drive eat find fix follow go grab help join keep
learn leave live look make meet move open pack pay pick plan play practice prepare put read remember run save see sell
send set show sing sit sleep speak spend stop study swim take teach tell turn visit walk wear work write
both family friends friend home house kids life money mom mum dad mother father music nature news people school stuff
summer spring autumn fall winter morning evening afternoon night breakfast lunch dinner weekend holiday birthday
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
october november december jan feb mar apr jun jul aug sep sept oct nov dec am pm
"""
ORDINARY = frozenset(_ORDINARY.split())
# Endings of words that are seldom names: `Painting is fun`, `Luckily`, `Excited`.
ORDINARY_ENDINGS = ("ing", "ly", "ed", "ness", "ment", "tion", "ful", "ous")
# Small words inside a name, between two capitalised ones.
INSIDE_NAMES = frozenset({"of", "the", "de", "la", "van", "von", "der", "da", "di", "del", "al", "&"})
BEGINS_NAMES = frozenset({"new", "great", "little", "old", "saint", "st"})  # ordinary words that a name may begin with
LATIN_TITLES = frozenset({"mr", "mrs", "ms", "miss", "dr", "prof", "professor", "sir", "uncle", "aunt"})

SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔"
    "钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"
    "張劉陳楊黃趙吳孫馬鄭許韓馮鄧葉蘇呂盧鍾譚陸賈韋鄒龍賀顧龔萬錢嚴湯"
)
DOUBLE_SURNAMES = "欧阳|司马|上官|诸葛|司徒|东方|皇甫|令狐|慕容|歐陽|司馬|諸葛"
# Before a surname: `老王`, `小李`.
CALLED = "老小阿"
# These make a name after 小 or 阿: `小明`, `阿芳`.
GIVEN = "明红华刚强丽芳伟宇杰雅兰梅玲敏静娟燕亮鹏超勇磊娜莉琳欣怡婷佳悦晴慧英辉斌霞萍倩颖洁茜晓丹紅華剛強麗蘭靜亞"
# Foreign names of two characters.
FOREIGN_NAMES = (
    "安娜|玛丽|大卫|汤姆|杰克|约翰|露西|莉莉|丽莎|艾伦|安迪|彼得|迈克|海伦|珍妮|艾玛|苏珊|凯特|若昂"
    "|瑪麗|大衛|湯姆|傑克|約翰"
)
TITLES = (
    "先生|女士|小姐|太太|老师|医生|教授|经理|同学|师傅|博士|总监|主任|律师|阿姨|叔叔|奶奶|爷爷|老師|醫生|經理|同學|師傅"
)
# A given name cannot include these, and a name may stand right after or before them.
AROUND_NAMES = (
    "说|说道|问|在|是|和|与|跟|同|的|去|来|给|对|把|被|叫|让|请|喜欢|认识|住|今年|昨天|今天|明天|上周|下周|最近|已经|也|都|就|"
    "很|不|没|有|想|要|会|能|到|从|买|送|吃|打|开|做|教|学|爱|养|搬|告诉|觉得|打算|开始|領|领|結|结|說|問|與|來|給|對|讓|請|買"
)
# The characters in transliterated foreign names.
TRANSLITERATED = (
    "阿埃艾安奥巴贝本比彼波伯布查达戴丹德蒂迪多厄恩尔菲费弗福戈格古哈汉赫亨霍基吉杰卡凯科克肯库拉莱兰朗劳勒雷里丽利"
    "莉莲琳卢露鲁伦罗洛玛麦曼梅米莫姆穆娜纳内尼妮娅诺居帕佩皮普奇乔琼萨塞桑莎珊史斯索塔泰汤特汀托瓦维威韦温沃希谢辛雅亚"
    "伊英约翰泽詹珍朱兹黛蕾茜薇伍顿逊森"
)
PLACES = (
    "北京|上海|天津|重庆|广州|深圳|杭州|南京|苏州|成都|武汉|西安|长沙|青岛|大连|厦门|福州|济南|郑州|合肥|昆明|贵阳|南昌|沈阳|"
    "哈尔滨|长春|太原|兰州|海口|三亚|拉萨|乌鲁木齐|呼和浩特|南宁|宁波|无锡|珠海|桂林|丽江|大理|洛阳|香港|澳门|台北|高雄|台湾|"
    "云南|四川|广东|广西|浙江|江苏|福建|湖南|湖北|河南|河北|山东|山西|陕西|贵州|海南|江西|安徽|辽宁|吉林|黑龙江|甘肃|青海|新疆|西藏|"
    "宁夏|内蒙古|中国|美国|英国|法国|德国|日本|韩国|泰国|印度|俄罗斯|加拿大|澳大利亚|新西兰|意大利|西班牙|新加坡|马来西亚|越南|"
    "东京|大阪|京都|首尔|纽约|伦敦|巴黎|柏林|罗马|悉尼|曼谷|莫斯科|洛杉矶|旧金山|芝加哥|波士顿|温哥华|多伦多"
)
# Endings of place names, after two to four other characters.
PLACE_ENDINGS = (
    "大学|医院|公司|公园|机场|博物馆|图书馆|火车站|中学|小学|省|市|区|县|镇|村|寺|湖|岛|大學|醫院|公園|機場|博物館"
)
BEFORE_PLACES = "在|到|去|从|往|回|住|于|离|来自|參觀|参观|從|來自"
