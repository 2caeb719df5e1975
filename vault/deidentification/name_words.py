"""Word lists for names of people, in English and Chinese. Plain data."""

# Short forms of given names: each line is one name and what people make of it.
_SHORT_FORMS = """
abigail abby gail|alexander alex alec sandy sasha xander|alexandra alex lexi sandra sasha|alfred al alf fred|alice
ally amanda mandy|andrew andy drew|angela angie|ann anna anne annie nan|anthony tony|barbara barb babs
barbie|benjamin ben benny bernard bernie|bradley brad|brian bri|caroline carrie caro lina|catherine cathy cate cat
kate katie kathy kit|charles charlie chuck chas|charlotte charlie lottie|christina chris chrissy tina|christine chris
chrissy tina|christopher chris kit topher|cynthia cindy|daniel dan danny|david dave davy|deborah deb debbie|dennis
denny|donald don donny|dorothy dot dolly dottie|douglas doug|edward ed eddie ned ted teddy|elizabeth beth betsy betty
eliza ella elsie libby lisa liz lizzie eleanor ellie nell nora|emily em emmy|emma em|eugene gene|evelyn evie|florence
flo|frances fran franny|francis frank fran franklin frank|frederick fred freddy|gabriel gabe|gabriella gabby|geoffrey
geoff|george georgie|gerald gerry jerry|gregory greg|hannah hanna nana|harold hal harry|helen nell nellie|henry hank
harry hal|isabella bella izzy|jacob jake|jacqueline jackie|james jim jimmy jamie|janet jan|jennifer jen jenny|jeffrey
jeff|jeremy jerry|jessica jess jessie|joanna jo joey john jack johnny jon|jonathan jon jonny nathan|joseph joe joey
jo|joshua josh|judith judy|julia jules|julian jules katherine kate katie kathy kat kit|kenneth ken kenny|kimberly
kim|lawrence larry|leonard len lenny leo|lillian lily lil louis lou|louise lou|lucille lucy|madeline maddie|margaret
maggie marge margie meg peg peggy rita|martha patty|martin marty|mary molly polly mae|matthew matt|maximilian
max|melanie mel|melissa mel missy|michael mick mickey mike mikey michelle shelly|mitchell mitch|natalie nat|nathan
nate nat|nathaniel nate nat|nicholas nick nicky|nicole nicky|olivia liv livvy|oliver ollie|pamela pam|patricia pat
patty tricia trish|patrick pat paddy|peter pete|philip phil pip|phillip phil rachel rach|raymond ray|rebecca becca
becky|richard dick rich richie rick ricky|robert bob bobby rob robbie bert|roberta bobbie|ronald ron ronnie|rosemary
rose|russell russ|samantha sam|samuel sam sammy|sarah sally sadie|sebastian seb|sharon shari|sophia sophie|stanley
stan|stephanie steph|stephen steve stevie|steven steve stevie|susan sue susie suzy|suzanne sue terence terry|teresa
terry tess|theodore ted teddy theo|theresa terry tess|thomas tom tommy|timothy tim timmy|valerie val vanessa
nessa|veronica ronnie|victoria vicky tori|vincent vince|virginia ginny|walter walt wally|wilhelm will willi|william
bill billy will willie liam|winifred winnie|zachary zach|johannes hannes hans|friedrich fritz|katharina kathi
kati|jose pepe francisco paco pancho|guadalupe lupe|giuseppe beppe|alessandro sandro|malgorzata gosia|katarzyna
kasia|aleksandra ola
"""
SHORT_FORMS = {
    words[0]: tuple(words[1:]) for line in " ".join(_SHORT_FORMS.split()).split("|") if len(words := line.split()) > 1
}
# Names that are ordinary words too: in small letters they are no name.
_WORDS = """
ace alma amber angel april arch art ash august autumn baker banks barber bates bean bear beau bell berry best bill
bird bishop black blessing bliss bloom blue bob bolt bond books boss bow box boy brand branch brandy bright brook
brooks brown buck bud burn bush butler buzz candy carol carpenter carter case cash cat chance chandler charity chase
chip christian church clay clark cliff coach cole comfort constant cook cooper coral corn court cox cross cruise
curry cutter daisy dale dawn day dean dear destiny dick diamond dixie dolly don dot dove drake drew driver duke dusty
earl east easter eden ernest ever faith fair fall farmer fern field fields finch fine fisher fish flint flora flower
ford forest forrest fortune foster fox francs frank franks free french frost gale gay gem gene gentle gill ginger
glass glen gold good grace grant gray green grey gross guy hale hall ham hand happy hardy harmony harper hart harry
haven hawk hay hazel heath heather heaven henna herb hill holiday holly honey hood hope house hunt hunter hurt
husband ice iris island ivory ivy jack jade jasmine jay jean jewel jim joe john jolly joy juan june justice key keys
king kit knight lake lamb lance land lane lark laurel law lee leaf legend leo lily lock long lord lot lou love low
luck mace mack mae major mann mark marks marsh mason mast may melody mercy merry mile miles mill miller mint miracle
misty mike moon moore more morning moss mouse myrtle nail nash nat neat needle new noble noel north ocean oak olive
opal page pain paige palm parish park parker parks pat patience paul pearl peg penny pepper piper pierce pine pink
pitt pleasant pole pollen pond poole pope porter post potter pound power precious price prince princess prudence
quick rail rain raven ray read red reed reese rich rick ring rip river rivers rob robin rock rod rose rosemary rowan
royal ruby rusty sage sails sand sandy sally scarlet scout sea self shade shepherd short silver singer sky small
smart smith snow spring star stark steel stella stern still stone storm street strong sue summer sun sunny swan swift
tanner tate taylor temple terry thorn tiger tom town trinity tucker turner val van victor victory vine viola violet
wade walker wall walls ward warner waters watts wayne weaver web webb wells west wheeler white wild will willow
winter wise wolf wood woods wool worth wren wright young amen an ana any are as at be can do he her him his if in is
it me my no not of on or our out she so the to too up us was we who why you yes ok chen fan han he hu hung jiang jin
kong lan lang li lin ling long lu ma man mei min ming mu pan pang peng ping qi rang ran rong run sang song sun tan
tang tong wan wang wei wen wu xia yan yang ye yi you yu
"""
ALSO_WORDS = frozenset(_WORDS.split())
_PARTICLES = "al bin da das de del della den der di do dos du el ibn la las le los san te ten ter van von y zu"
PARTICLES = frozenset(_PARTICLES.split())
# Words in references of people, as in `customer-anna`, that are no part of a name.
_ROLES = """
subject customer patient client user person member employee student case guest contact account test tenant owner visitor
participant respondent resident lead profile the of
"""
ROLES = frozenset(_ROLES.split())
LATIN_TITLES = (
    "mr|mrs|ms|miss|mx|master|dr|doctor|prof|professor|sir|madam|madame|ma'am|lady|lord|dame|rev|reverend"
    "|father|sister|brother"
    "|captain|capt|officer|judge|justice|senator|president|nurse|coach|frau|herr|fräulein|fraulein|mme|mlle"
    "|monsieur|m|señor|senor|señora"
    "|senora|señorita|senorita|sr|sra|srta|signor|signora|signorina|sig|pan|pani|don|doña|dona"
)
# Titles that make any capitalised word after them a name.
SURE_TITLES = (
    "Mr|Mrs|Ms|Mx|Miss|Dr|Prof|Professor|Sir|Frau|Herr|Fräulein|Mme|Mlle|Monsieur|Madame|Señor|Señora|Señorita"
    "|Signor|Signora"
)
HAN_TITLES = (
    "先生|女士|小姐|太太|夫人|老师|老師|医生|醫生|大夫|教授|博士|经理|經理|总监|總監|主任|律师|律師|师傅|師傅|同学|同學|护士|護士|警官|老板"
    "|老闆|阿姨|叔叔|奶奶|爷爷|爺爺|大哥|大姐|哥|姐|叔|姨|总|總|工|董|某某|某"
)
SURE_HAN_TITLES = (
    "先生|女士|小姐|太太|夫人|老师|老師|医生|醫生|大夫|教授|律师|律師|师傅|師傅|同学|同學|护士|護士|阿姨|叔叔"
    "|奶奶|爷爷|爺爺|大哥|大姐"
)
# Surnames beside those of vault.lexicon.names, common in Taiwan or rarer.
MORE_SURNAMES = (
    "柯阮游施洪温翁蓝簡简沙古涂凌童柴樊祝桑耿莊庄梅卓甄柏褚窦岳左霍兰成麻季强甘車车毕戚穆尚盛单褟屈聂聶井桂丛舒倪麦莫詹殷辛管靳缪苗"
    "佘余於符焦巫饒饶裴齊齐席包安常康伍余元時时傅皮卞楚闻黨翟藍阎閻湛明臧計戴宋龐庞紀纪項项粱丘駱骆高林鐘連练練廉岑費费薄藏候解应應"
)
_KIN = (
    "(?:step|half-?|grand|great-?grand|god|foster )?(?:brother|sister|mother|father|son|daughter|child"
    "(?:ren)?|parent|uncle|aunt)s?(?:-in-law)?"
    "|mom|mum|mommy|mummy|mama|mamma|dad|daddy|papa|sibling|husband|wife|wives|spouse|hubby|fianc[eé]e?"
    "|boyfriend|girlfriend|partner"
    "|ex(?:-(?:husband|wife|boyfriend|girlfriend|partner))?|cousin|nephew|niece|grandma|grandpa|granny|gran"
    "|nan|nana|granddad|auntie"
    "|kids?|twins?|bro|sis|in-laws?|son|daughter|baby|toddler|widow(?:er)?|famil(?:y|ies)|relatives?"
)
KIN = rf"(?:{_KIN})s?"
FRIENDS = (
    "(?:best )?(?:friend|buddy|roommate|flatmate|colleague|coworker|co-worker|boss|manager|neighbou?r|teacher"
    "|coach|doctor|therapist|mentor)s?"
)
HAN_KIN = (
    "哥哥|弟弟|姐姐|妹妹|爸爸|妈妈|媽媽|父亲|父親|母亲|母親|父母|儿子|兒子|女儿|女兒|孩子|丈夫|妻子|老公|老婆|爱人|愛人|太太|先生|未婚夫|未婚妻|男友|女友"
    "|男朋友|女朋友|前夫|前妻|前男友|前女友|爷爷|爺爺|奶奶|外公|外婆|姥姥|姥爷|祖父|祖母|外祖父|外祖母|叔叔|伯伯|伯父|叔父|姑姑|姑妈|姑媽|舅舅|舅妈|舅媽|阿姨"
    "|姨妈|姨媽|婶婶|嬸嬸|表哥|表弟|表姐|表妹|堂哥|堂弟|堂姐|堂妹|侄子|侄女|姪子|外甥女|外甥|孙子|孫子|孙女|孫女|岳父|岳母|公公|婆婆|嫂子|姐夫|妹夫|女婿|儿媳|继父|继母"
    "|養父|养父|养母|双胞胎|亲戚|家人|哥|姐|弟|妹|爸|妈|媽|爹|娘"
)
# Words that begin with a character which is a surname too, and that no name begins with.
NO_HAN_NAMES = (
    "高兴|高興|高中|高考|高血压|高度|高铁|马上|馬上|方便|方法|方面|何时|何地|何况|任何|万一|万分|向来|向着|向我|金融|金钱|白色|黄色|毛病|毛衣"
    "|余下|程度|严重|严格|曾经|钱包|钱都|史上|夏天|许多|周末|周日|周一|周二|周三|周四|周五|周六|周围|谢谢|谢过|田里|田野|董事|钟头|陆续|范围|付钱|付款"
    "|顾客|段时|段落|莫名|戴着|戴上|孙子|孫子|孙女|孫女|胡说|胡子|胡同|石油|石头|江边"
)
# Beside HAN_KIN, for names right after them.
MORE_HAN_KIN = (
    "老伴|老爸|老妈|老媽|老爹|老娘|老丈人|丈母娘|小姨子|小舅子|大舅子|小叔子|小姑子|大姑子|妯娌|连襟|干妈|干爹|干儿子"
    "|干女儿|闺女|閨女|媳妇|媳婦|儿媳妇|儿媳婦|养女|养子|继女|继子|后妈|后爸|二叔|三叔|大叔|大伯|二伯|大舅|二舅|小舅"
    "|大姨|二姨|小姨|大姑|二姑|小姑|姑父|姑丈|姨父|姨夫|伯母|婶子|嫂嫂|弟媳|弟妹|表叔|表妹夫|外孙女|外孙|孙儿|大儿子"
    "|小儿子|大女儿|小女儿|独生子|独生女|情人|恋人|对象|對象|大哥|二哥|三哥|大姐|二姐|三姐|小弟|小妹|教父|教母"
    "|岳父岳母"
)
HAN_ROLES = (
    "保姆|司机|司機|护工|護工|邻居|鄰居|同事|朋友|好友|同学|同學|室友|舍友|闺蜜|閨蜜|发小|老板|老闆|老师|老師|班主任"
    "|医生|醫生|护士|護士|上司|领导|領導|秘书|秘書|助理|师傅|師傅|师父|教练|教練|房东|房東|租客|客户|客戶|徒弟|学生"
    "|學生|患者|病人|病友|队友|隊友|战友|網友|网友|搭档|钟点工|月嫂|保洁|保安|店员|老乡|阿姨|律师|律師|大夫|经理|經理"
    "|主任|组长|队长|班长|下属|员工|員工|老同学|同桌|牧师|神父"
)
# Words that begin like a name after such a word, or that the dictionary takes for names.
NO_CALLED_NAMES = (
    "明天|明年|明日|明显|明顯|今天|春天|夏天|秋天|冬天|平时|平時|国家|國家|学习|學習|学生|學生|文学|文學|海边|成立"
    "|家里|家乡|家庭|光荣|青春|春节|诗歌|天才|正好|正在|正常|恩爱|思念|怀念|财富|树林|森林|宝贝|冰冷|小学|小學|小时"
    "|小時|小心|小孩|小朋|小组|小組|小区|小區|小声|小聲|小说|小說|小姐|小便|小小|小腿|小家|小伙|小型|小气|小狗|小猫"
    "|小贩|小店|小吃|小事|小步|小时候|阿姨|阿尔|阿爸|阿妈|天天|常常|刚刚|剛剛|慢慢|偷偷|渐渐|漸漸|默默|往往|仅仅|偏偏"
    "|恰恰|稍稍|悄悄|匆匆|处处|處處|时时|時時|人人|家家|个个|個個|每每|久久|好好|早早|远远|遠遠|狠狠|紧紧|轻轻|静静"
    "|靜靜|深深|纷纷|紛紛|频频|连连|連連|整整|统统|通通|暗暗|略略|乖乖|快快|等等|谢谢|謝謝|看看|想想|试试|試試|说说"
    "|说着|聊聊|走走|玩玩|听听|妈妈|爸爸|哥哥|姐姐|弟弟|妹妹|爷爷|奶奶|叔叔|伯伯|舅舅|姑姑|公公|婆婆|宝宝|寶寶|星星"
    "|太太|文明|连衣裙|连衣|小王子|美的|拓宽|宫保|荣幸|才华|宝贵|那首|祝你|滑雪|明白|西兰花|乌托邦|古老|高超|保持"
    "|幸福|通过|冰淇|宁静|安静|孝敬|小丑|太棒|平凡|维生素|令人|喝咖|雪山|言喻|关怀|祝福|明智|科普|智慧|老公|老婆|高兴"
    "|开心|英明|伟大|美丽|聪明|明亮|勇敢|刚强|辉煌|清洁|平静|文静|平安|健康|安慰|温柔|温暖|温和|和气|成功|成长|成熟"
    "|向往|阳光|和平|许多|马上|伤心|热心|包括|于是|应该|安排|习惯|强调"
)
# Characters that given names are made of; two of them after a word for a relative are mostly one.
HAN_GIVEN = (
    "建国國军軍民德福铁鐵柱浩然子涵梓萱轩軒宇泽澤学學文志海波涛濤平安康宁寧春夏秋冬兰蘭菊桃桂香花翠云雲凤鳳霞珍珠玉巧"
    "秀淑贤賢慧芬芳荣榮祥贵貴富财財根生旺庆慶喜林森山川江河石磊鑫金宝寶龙龍虎飞飛鹏鵬翔宏伟偉正义義仁勇忠诚誠光明亮耀"
    "刚剛强強丽麗华華杰傑雅梅玲敏静靜娟燕超莉琳欣怡婷佳悦晴英辉輝斌萍倩颖洁潔茜晓曉丹红紅蓉薇艳艷彩月琴清玮瑜瑶瑤瑞琪"
    "昊晨辰阳陽俊峰嘉家诗詩雨雪冰心怀思梦夢涵睿博哲皓天佑承启啟永昌盛茂才立新成树樹青松柏良善美凡恩"
)
# Small words that are no part of a name.
HAN_SMALL = (
    "又再还還才更最太真只将將从從向但而且因为為所以如果虽然雖与及或每这這那此其他她它我你您们們什么麼怎谁誰哪几幾多少"
    "一二三四五六七八九十百千两兩个個上下里裡外前后後左右中间間时時之着著过過得地吧吗嗎呢啊呀哦嘛的了就很不没沒有想要"
    "会會能到买買送吃打开開做教来來去给給对對把被叫让讓请請喜在是和跟同说說问問看走坐站住用拿带帶发發出进進回起当當总"
    "總先正曾已刚剛常"
)
MORE_DOUBLE_SURNAMES = (
    "纳兰|納蘭|尉迟|公孙|夏侯|端木|独孤|獨孤|南宫|南宮|宇文|长孙|長孫|西门|呼延|轩辕|澹台|濮阳|淳于|申屠|钟离|鲜于"
    "|赫连|完颜|完顏|拓跋|东郭|闻人|欧陽"
)
