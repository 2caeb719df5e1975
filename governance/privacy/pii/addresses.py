"""Postal addresses in English and Chinese, and of the countries around: a street with a house number, and what follows.

An address after words such as "lives at" or 住址 is found to the end of its sentence.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from governance.privacy.pii.identifiers import Identifier
from governance.vocabulary import PersonalKind

_CAP = "[A-Z\u00c0-\u00de\u0100-\u017f][\\w'’.-]{0,24}"
_SMALL = (
    "(?:de|del|della|delle|degli|dei|di|da|do|dos|das|du|des|la|las|los|le|les|el|y|e|of|the|und|am|an|der|den|im"
    "|zu|zur|van|von|on|i|bei|vorm|na)(?!\\w)"
)
_NAME = f"(?:{_CAP}|{_SMALL}|[0-9]{{1,3}}(?:st|nd|rd|th))"
_KIND = (
    "(?:Street|St|Avenue|Ave|Av|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Court|Ct|Place|Pl|Square|Sq|Terrace"
    "|Ter|Way|Close"
    "|Crescent|Cres|Parkway|Pkwy|Highway|Hwy|Circle|Cir|Trail|Trl|Alley|Row|Walk|Gardens?|Grove|Mews|Hill"
    "|Park|Path|Pike|Plaza"
    "|Point|Ridge|Route|Run|Spur|Station|Track|Tunnel|Turnpike|Union|Valley|View|Village|Ville|Vista|Wall"
    "|Green|Heights|Harbor"
    "|Haven|Island|Isle|Junction|Key|Knoll|Lake|Land|Landing|Light|Loaf|Locks|Loop|Lodge|Manor|Meadows?|Mill"
    "|Mission|Motorway|Mount"
    "|Mountain|Neck|Orchard|Oval|Pass|Passage|Pine|Plain|Port|Prairie|Radial|Ramp|Ranch|Rapid|Rest|River"
    "|Roads|Rue|Shoal|Shore"
    "|Springs?|Stravenue|Stream|Streets|Summit|Throughway|Trace|Trafficway|Underpass|Viaduct|Well|Wells|Bayou"
    "|Beach|Bend|Bluff"
    "|Bottom|Branch|Bridge|Brook|Burg|Bypass|Camp|Canyon|Cape|Causeway|Center|Centers|Cliff|Club|Common"
    "|Corner|Corners|Course"
    "|Cove|Creek|Crest|Crossing|Crossroad|Curve|Dale|Dam|Divide|Estates?|Expressway|Extension|Fall|Falls"
    "|Ferry|Field|Fields|Flat"
    "|Flats|Ford|Forest|Forge|Fork|Forks|Fort|Freeway|Gateway|Glen|Glens|Hollow|Inlet|Mall|Marg|Nagar|Chowk"
    "|Overpass|Parks"
    "|Parkways|Skyway|Squares"
    "|Quay|Quays|Chase|Rise|Circuit|Cct|Esplanade|Esp|Parade|Pde|Promenade|Grange|Concourse|Wynd|Arcade"
    "|Outlook|Vale|Strand"
    "|Copse|Cutting|Dell|Downs|Edge|End|Entrance|Frontage|Gap|Gate|Gates|Glade|Interchange|Laneway|Line|Link"
    "|Lookout|Mead"
    "|Nook|Pathway|Piazza|Plateau|Pocket|Quadrant|Ramble|Reach|Reserve|Retreat|Ride|Round|Siding|Slope|Sound"
    "|Steps|Strip"
    "|Subway|Thoroughfare|Tollway|Top|Tor|Triangle|Upper|Watch|Wharf|Yard|Brae|Riviera|Rampart|Parklands"
    "|Parkside|Turn|Circus|Alleyway|Artery|Ground|Lees|Lock|Part|Trailer|Break|Bowl|Corso|Deviation"
    "|Distributor|Fairway|Follow|Foreshore|Grove|Hub|Brow|Boardwalk|Amble|Approach|Anchorage|Basin|Block)"
)
_ROAD = (  # a word for a street that stands before its name, as in French, Spanish, Italian and Polish
    "(?:C\\.|[Rr]ue|[Aa]venue|[Bb]oulevard|[Cc]hemin|[Pp]lace|[Ii]mpasse|[Aa]llée|[Qq]uai|[Cc]ours|[Rr]oute"
    "|Calle|C/|Avenida|Av\\.|Avda\\.?|Plaza|Paseo|Carrer|Ronda|Camino|Rambla|Pasaje|Alameda|Glorieta"
    "|Urbanización|Vial|Acceso"
    "|Cuesta|Callejón|Cañada|Pasadizo|Rúa|Rua|R\\.|Av|Praça|Travessa|Prolongación|Circuito|Cerrada|Calzada"
    "|Privada|Andador|Eje|Bulevar"
    "|Via|Viale|Piazza|Piazzetta|Corso|Vicolo|Largo|Contrada|Strada|Borgo|Canale|Incrocio|Rotonda|Stretto|Lungarno"
    "|[Uu]l\\.|[Uu]lica|[Aa]l\\.|[Aa]leja|[Pp]l\\.|[Pp]lac|[Oo]s\\.)"
)
_NUMBER = "[0-9]{1,6}(?:[/-][0-9]{1,5})?(?:[ -]?[A-Za-z](?![A-Za-z]))?"
_UNIT = (
    r"(?:Apt|Apartment|Suite|Ste|Unit|Flat|Floor|Fl|Room|Rm|No|Studio|App|Piso|Puerta|Interno|Appartamento|Stiege"
    r"|Top|Level|Lvl|Shop|RD)(?![a-z])\.? ?#?\.? ?[A-Za-z0-9]{1,6}(?![A-Za-z0-9])|#[A-Za-z0-9]{1,6}|[0-9]{1,4}/(?=\s)"
)
_ZIP = (
    "(?:[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}|[A-Z][0-9][0-9W] ?[0-9A-Z]{4}"
    "|[A-Z][0-9][A-Z] ?[0-9][A-Z][0-9]|(?:[A-Z]{1,2}-)?[0-9]{2}-[0-9]{3}"
    "|[0-9]{4,5}-[0-9]{3,4}|(?:[A-Z]{1,3}[- ])?[0-9]{4,6}(?: [A-Z]{2}(?![A-Za-z]))?|[0-9]{3} [0-9]{2})"
)
_CITY = f"{_CAP}(?:[ -](?:{_CAP}|{_SMALL})){{0,4}}(?: [0-9]{{1,2}}(?![0-9A-Za-z]))?"
_BREAK = "(?:\\s*[,\\n][\\s>?]*|\\s+)"
_REST = (
    f"(?:{_BREAK}(?:{_UNIT}|{_ZIP} {_CITY}|{_ZIP}(?![0-9A-Za-z])|[A-Z]{{2,3}}(?![A-Za-z])|\\([A-Z]{{2}}\\)"
    f"|(?<=[,\\n>?] ){_CITY}|(?<=[\\n>?]){_CITY}|(?<=[0-9] ){_CITY}|(?<=[A-Z] ){_CITY})){{0,8}}"
)
_STREET = (
    f"(?:(?:{_UNIT})[,\\s]{{1,3}})?{_NUMBER},? (?:{_NAME} ){{1,4}}{_KIND}s?(?![A-Za-z])\\.?(?: (?:North|South|East|West"
    f"|[NSEW]{{1,2}})(?![A-Za-z]))?"
)
_COMMA = "\\s*[,\\n][\\s>?]*"
_NO_YEAR = "(?!(?:19|20)[0-9]{2}(?![0-9-]))"
_HOUSE_WORD = (
    "(?:H\\.? ?No\\.? ?|Room |Level |Shop |House (?:No\\.? )?|Plot (?:No\\.? )?|Flat |Studio |Unit "
    "|Apartment |Apt\\.? |#"
    "|B(?:lock)? ?[0-9]{1,3},? L(?:ot)? ?)"
)
# A block of lines or commas that ends in a postcode, begun by a house number or by a street and its number.
_BLOCK = (
    f"(?:{_HOUSE_WORD})?{_NUMBER}[,\\s>?]{{1,6}}"
    f"(?:{_CITY}{_COMMA}){{0,5}}{_CITY}[,\\s>?-]{{1,6}}{_NO_YEAR}{_ZIP}(?![0-9A-Za-z])"
    f"|{_CITY},? (?:n[°º.]? ?|No\\.? ?)?{_NUMBER}(?: [0-9]{{1,4}})?{_COMMA}(?:{_CITY}{_COMMA}){{0,3}}"
    f"(?:[A-Z][A-Z. ]{{1,6}} )?"
    f"(?:(?<=\\n){_ZIP}|{_NO_YEAR}(?=[0-9A-Z-]{{5}}){_ZIP})(?![0-9A-Za-z])"
)
_ENDING = (
    "(?:straße|strasse|str\\.|weg|platz|allee|gasse|ring|damm|ufer|steig|gatan|gata|vägen|stigen|gränd|torget"
    "|vej|gade|stræde"
    "|straat|lei|laan|plein|singel|dreef|hof|baan|kade|katu|polku|kuja|veien|vegen)"
)
_SUFFIXED = (
    f"(?!During|Spring|String|Bring|Offspring|Wellspring)[A-Z\u00c0-\u00de\u0100-\u017f][\\w.-]{{0,30}}?"
    f"(?:-?{_ENDING}|-(?:Straße|Str\\.|Weg|Platz|Allee|Gasse|Ring|Damm|Ufer))(?![a-z])"
)
STREET = re.compile(
    f"(?<![\\w/-])(?:{_BLOCK}|{_STREET}"
    f"|{_NUMBER}(?: (?:bis|ter))?,? {_ROAD} (?:(?:{_CAP}|{_SMALL}|d['’]{_CAP}|l['’]{_CAP}) ?){{1,5}}"
    f"|{_NUMBER},? {_CAP}(?: {_CAP}){{0,3}}{_BREAK}(?:{_ZIP}(?![0-9A-Za-z])|{_UNIT})"
    f"|{_ROAD}(?: (?:{_CAP}|{_SMALL})){{1,5}},? (?:n\\.?º? ?)?{_NUMBER}"
    f"|(?:{_CAP} )?{_SUFFIXED} {_NO_YEAR}{_NUMBER}|{_NUMBER} {_SUFFIXED}"
    f"|(?:[A-Z\u00c0-\u00de\u0100-\u017f][\\w-]{{1,20}} )(?:Straße|Str\\.|Weg|Platz|Allee|Gasse|Ring|Damm"
    f"|Ufer) {_NUMBER}"
    "|P\\.? ?O\\.? ?Box [0-9A-Z]{1,8}|(?:PSC|CMR|Unit) [0-9]{3,5},? Box [0-9]{3,5}|(?:USNS|USNV|USS"
    "|USCGC) [A-Z]\\w{1,20}"
    f"){_REST}"
)
POSTCODE = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z]{1,2}[0-9][0-9A-Z]? [0-9][A-Z]{2}|(?:A[LKSZRAEP]|C[AOT]|D[EC]|F[LMO]|G[AU]|HI"
    r"|I[ADLN]|K[SY]|LA"
    r"|M[ADEHINOPST]|N[CDEHJMVY]|O[HKR]|P[ARW]|RI|S[CD]|T[NX]|UT|V[AIT]|W[AIVY]) [0-9]{5}(?:-[0-9]{4})?"
    r"|[A-Z][0-9][A-Z] [0-9][A-Z][0-9])(?![A-Za-z0-9])"
)
INTRODUCED = re.compile(
    r"(?:\baddress(?:es)?(?: (?:is|to|at|as|of|on file|in \w{1,20}))?\s?[:=]?|\b(?:lives?|lived|living|resid"
    r"(?:es?|ing|ed)|stay(?:s|ing)?) (?:at|on)"
    r"|\bmoved to(?= [0-9])|地址(?:是|为|為|在)?[：:]?|住址(?:是|为|為)?[：:]?"
    r"|(?:住|居住|家住|现住|現住|寄)(?:在|到|于|於))\s?"
    r"(?P<place>[^\s.;!?。；！？，][^;!?。；！？\n]{0,98}[^\s.;!?。；！？])",
    re.IGNORECASE,
)
_HAN = "\u4e00-\u9fff"
HAN_RUN = re.compile(f"(?:[0-9]{{3,6}} ?)?[{_HAN}0-9A-Za-z\uff10-\uff19-]{{4,80}}(?: ?[0-9]{{6}}(?![0-9]))?")
AREA = re.compile(f"(?<=[{_HAN}])(?:特别行政区|自治区|自治州|地区|街道|[省市州盟区區县縣旗镇鎮乡鄉村里])")
ROAD = re.compile(f"(?<=[{_HAN}0-9])(?:大道|大街|胡同|[路街道巷弄段里村苑园園]|小区|小區|花园|大厦|大廈|广场|公寓)")
HOUSE = re.compile(
    "[0-9A-Za-z〇○零一二三四五六七八九十百之\uff10-\uff19-]{1,8}"
    "(?:号楼|號樓|单元|單元|[号號栋棟幢座室楼樓层層弄巷院户戶房])(?:之[0-9]{1,3})?(?: ?[0-9]{6}(?![0-9]))?"
)
_HAN_DOOR = re.compile("[之-]?(?:[0-9]{2,5}|[〇○零一二三四五六七八九]{2,5})(?![0-9年月日])(?:室|号|號|房|户|戶)?")
LEAD = re.compile("住在|家在|住|位于|位於|地址|住址|搬到|搬去|回到|寄到|来自|來自|送到|在|到|是|为|為|从|從|去|于|於")
# In small letters or any: a street and its number, and what may stand around it.
_LOW_KIND = (
    "(?:street|avenue|road|lane|boulevard|blvd|crescent|terrace|close|court|drive|square"
    "|gardens|grove|mews|row|walk|quay|rise|st|ave|rd)"
)
_LOW_WORD = (
    "(?!(?:the|a|an|this|that|these|those|my|your|his|her|our|their|its|down|up|along|off|on|in|at|to|from|of|for|and|or"
    "|with|by|side|main|busy|quiet|narrow|wide|long|short|same|every|each|next|other|another|wrong|right|one|two|three|four"
    "|lane|way|cross|high-speed|dirt|gravel|open|tennis|food|supreme|minutes?|hours?|days?|weeks?|miles?|kilomet(?:er|re)s?|km"
    "|met(?:er|re)s?|yards?|feet|way|people|cars?|houses?|blocks?|shops?|times?|percent|years?|months?|more|different"
    "|other|new|old)(?![a-z]))[a-z\u00c0-\u024f'’-]{2,20}"
)
_LOW_GERMAN = "[a-z\u00df-\u024f]{2,24}(?:straße|strasse|str\\.|gasse|allee|platz|damm|ufer)"
_NUMBER_SIGN = "(?:no\\.?|nr\\.?|number|house|#)\\s?"
_LOW_TOWN = "(?:,? (?:in )?[0-9]{4,6} [a-z\u00c0-\u024f]{3,20}|, [a-z\u00c0-\u024f]{3,20}(?=[\\s.,;!?]|\\Z))"
_STOREY = (
    "(?:(?:ground|top|first|second|third|fourth|fifth|sixth|[0-9]{1,2}(?:st|nd|rd|th)) floor"
    "|floor [0-9]{1,2}|(?:flat|apt\\.?|unit) [0-9a-z]{1,4})"
)
LOW_STREET = re.compile(
    rf"(?<![\w/-])(?:{_NUMBER_SIGN}{_NUMBER}(?:, {_STOREY}){{0,2}},? (?:{_LOW_WORD} ){{1,3}}{_LOW_KIND}(?![a-z])"
    rf"|(?<=at ){_NUMBER},? (?:{_LOW_WORD} ){{1,3}}{_LOW_KIND}(?![a-z])"
    rf"|{_NUMBER},? (?:{_LOW_WORD} ){{1,3}}{_LOW_KIND}(?=, [a-z]{{3}})"
    rf"|{_LOW_GERMAN} {_NUMBER}|{_NUMBER},? {_LOW_GERMAN}(?![a-z])){_LOW_TOWN}?",
    re.IGNORECASE,
)
# A postcode and its town right after an address.
TOWN_AFTER = re.compile("[,;]?\\s(?:in |near |at )?(?:[A-Z]{1,2}-)?[0-9]{4,6} [A-Za-z\u00c0-\u024f]{3,24}")
POSTCODE_WORD = re.compile(
    "(?:(?:zip|post|postal) ?code|\\bzip|\\bplz|门牌号?|房间号|房号|邮编|郵編|邮政编码|郵遞區號)"
    "(?: is|是|为|：|:)?\\s?(?P<code>[A-Z0-9]{2,6}(?:[ -][0-9][A-Z0-9]{2,3})?)(?![A-Za-z0-9])",
    re.IGNORECASE,
)
# What may be a part of an address, and is not sure.
UNSURE = re.compile(
    rf"(?<![\w/-]){_NUMBER} (?:{_LOW_WORD} ){{1,2}}{_LOW_KIND}(?![a-z])"
    rf"|(?:(?<=[io]n )|(?<=of )|(?<=at )|(?<=to ))(?:{_LOW_WORD} ){{1,2}}"
    r"(?:street|avenue|road|lane|boulevard|crescent|terrace)(?![a-z])"
    r"|(?<![\w/-])(?:flat|apt\.?|apartment|unit|room(?= [0-9]{3})) (?:no\.? ?)?[0-9]{1,4}[a-z]?(?![\w-])"
    r"|(?:(?<=in )|(?<=to )|(?<=of ))(?![0-9]{2}000)[0-9]{5} [a-z\u00c0-\u024f]{3,24}"
    r"|(?<![\w.,/-])(?-i:[0-9]{5} [A-Z][a-z\u00df-\u024f]{2,24})",
    re.IGNORECASE,
)
_STOPS = re.compile(
    r"(?<!\bApt)(?<!\bSte)(?<!\bSt)(?<!\bAve)(?<!\bRd)(?<!\bDr)(?<!\bNo)(?<!\bBox)(?<!\bBlvd)\.(?:\s|$)"
    r"|[，,]\s?(?:and|but|so|please|because|which|who|since|然后|所以|但|请)|\s(?:and|but|for|since|because|with|if"
    r"|when|after|until|instead|please|last|next|this|in [12][0-9]{3}(?![0-9]))(?![a-z])"
    r"|(?<=[\u4e00-\u9fff])[，,]",
    re.IGNORECASE,
)


def find_addresses(text: str) -> Iterator[Identifier]:
    has_digit = any(map(str.isdigit, text))
    if has_digit:
        for found in STREET.finditer(text):
            town = TOWN_AFTER.match(text, found.end())
            yield Identifier(PersonalKind.ADDRESS, found.start(), town.end() if town else found.end(), "address:street")
        for found in LOW_STREET.finditer(text):
            yield Identifier(PersonalKind.ADDRESS, found.start(), found.end(), "address:street")
        for found in POSTCODE_WORD.finditer(text):
            if any(map(str.isdigit, found["code"])):
                yield Identifier(PersonalKind.ADDRESS, *found.span("code"), "address:postcode")
        for found in POSTCODE.finditer(text):
            yield Identifier(PersonalKind.ADDRESS, found.start(), found.end(), "address:postcode")
        for found in INTRODUCED.finditer(text):
            yield from _find_introduced(text, found)
    if not text.isascii():
        for run in HAN_RUN.finditer(text):
            yield from _find_han(text, run.start(), run.end())


def find_unsure_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of what may be parts of addresses: streets in small letters, flats, postcodes with towns."""
    yield from (found.span() for found in UNSURE.finditer(text))


def _find_han(text: str, start: int, end: int) -> Iterator[Identifier]:
    """Yield the address in a run of characters: a house after a road, or an area inside another one."""
    roads = [found.end() for found in ROAD.finditer(text, start, end)]
    areas = [found.end() for found in AREA.finditer(text, start, end)]
    houses = list(HOUSE.finditer(text, start, end))
    placed = [found for found in houses if any(found.start() <= road + 1 <= found.end() for road in (*roads, *areas))]
    if not placed and any(before.end() == after.start() for before, after in pairwise(houses)):
        placed, start = houses, houses[0].start()
    nested = [at for before, at in pairwise(areas) if at - before >= 2]
    if not placed and not (nested and (roads[-1:] > nested[:1] or len(nested) > 1)):
        return
    first = min([*areas, *roads, *(found.start() for found in placed)])
    for lead in LEAD.finditer(text, start, first):
        start = lead.end()
    last = max([*(nested and areas), *(roads if not placed else ()), *(found.end() for found in houses)], default=end)
    if placed and (door := _HAN_DOOR.match(text, last)):
        last = door.end()
    if start < last:
        yield Identifier(PersonalKind.ADDRESS, start, last, "address:han")


def _find_introduced(text: str, found: re.Match[str]) -> Iterator[Identifier]:
    start, end = found.span("place")
    stop = _STOPS.search(text, start, end)
    end = stop.start() if stop else end
    place = text[start:end]
    if len(place) >= 6 and any(map(str.isdigit, place)) and "@" not in place and "://" not in place:
        yield Identifier(PersonalKind.ADDRESS, start, end, "address:word")
