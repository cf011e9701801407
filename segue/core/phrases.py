"""How people put what they ask of past conversations, in the languages that we know some words of.

Patterns only; what they mean together is said in `requests.py`. A pattern of a language with spaces is for the
beginning of a text; one of a language without is for any place.
"""

import re


def _either(*lines: str) -> str:
    return f"(?:{'|'.join(lines)})"


def _leading(*lines: str) -> re.Pattern[str]:
    """One of these as whole words, and what parts them from the rest."""
    return re.compile(rf"{_either(*lines)}(?!\w)[\s,:]*", re.IGNORECASE)


def _whole(*lines: str) -> re.Pattern[str]:
    return re.compile(_either(*lines), re.IGNORECASE)


GREETING = _leading(
    r"hi|hello|hey|hiya|yo|good (?:morning|afternoon|evening|day)|greetings|thanks?(?: you)?(?: very much| a lot)?",
    r"hallo|guten (?:tag|morgen|abend)|moin|servus|danke",
    r"bonjour|bonsoir|salut|coucou|merci",
    r"hola|buen[oa]s? (?:d[ií]as?|tardes|noches)|gracias",
    r"привет|здравствуйте?|добрый (?:день|вечер)|доброе утро|спасибо",
    r"你好|您好|嗨|谢谢|謝謝",
    r"こんにちは|こんばんは|おはよう(?:ございます)?|ありがとう(?:ございます)?",
    r"안녕(?:하세요)?|감사합니다",
)
POLITE = _leading(
    r"please|pls|ok|okay|so|and|now|(?:can|could|would|will) (?:you|we|i)|i (?:want|need|wish|would like) to",
    r"i'd like to|let'?s|let us",
    r"bitte|kannst du|können sie|ich möchte",
    r"s'il (?:te|vous) pla[iî]t|peux-tu|pouvez-vous|je veux",
    r"por favor|puedes|puede|quiero",
    r"пожалуйста|можешь|можете|хочу",
    r"请|請|帮我|幫我|麻烦|麻煩",
)
COURTESY = re.compile(
    r"[\s,]*"
    + _either(
        r"please|pls|thanks|thank you|bitte|danke|por favor|gracias|s'il (?:te|vous) pla[iî]t|merci",
        r"пожалуйста|спасибо|吧|ください|お願いします|주세요|줘",
    )
    + r"?[\s.!?。！？…]*$",
    re.IGNORECASE,
)
"""At the end of a text."""
HELP = _whole(
    r"[/?]|/?help(?: me)?|commands|what (?:can|do) you do|how does (?:this|it) work|who are you",
    r"what (?:can|should) i (?:do|ask)(?: here| you)?",
    r"hilfe|was kannst du|aide|que (?:peux|sais)-tu faire|ayuda|qué puedes hacer|помощь|что ты умеешь",
    r"帮助|幫助|你能做什么|ヘルプ|使い方|도움말|도와",
)

RESUME = _leading(
    r"resume|reopen|continue(?: with| from| in)?|carry on(?: with| in)?|go (?:on with|on in|back to)|pick up",
    r"return to|switch(?: back)? to",
    r"setze?|mach(?:e|en)? weiter mit|weiter mit|zurück zu",
    r"reprend(?:s|re|ez)|reprenons|continue[rz]",
    r"reanuda|retoma|contin[uú]ar?",
    r"продолж\w+|возобнов\w+|вернись к",
)
SUMMARISE = _leading(
    r"summari[sz]e|sum up|recap(?: of)?|tl;?dr|what happened in",
    r"(?:(?:give|show|write|make)(?: me)? )?(?:an? |the |my )?(?:short |quick |brief )?"
    r"(?:summary|overview|recap) (?:of|for|about|on)",
    r"fasse?|zusammenfassung",
    r"résum\w+|resume[rz]",  # `resume` alone is English
    r"resumen|res[uú]me(?:me|lo|la)|resumir",
    r"резюм\w+|кратко|перескаж\w+|подведи итог\w*",
)
SHOW = _leading(
    r"show(?: me)?|display|open|view|read(?: me)?|print|let me see",
    r"zeige?(?: mir)?|öffne",
    r"montre[rz]?(?:-moi)?|affiche[rz]?|ouvre[rz]?",
    r"mu[eé]stra(?:me)?|ens[eé]ña(?:me)?|abre",
    r"покажи|открой",
)
RESUME_UNSPACED = _whole(
    "继续|繼續|恢复|恢復|接着|接著|回到",
    "再開(?:して)?|続け(?:て|る|たい)?|続き",
    "이어서|계속(?:해|하기)?|재개(?:해)?",
)
SUMMARISE_UNSPACED = _whole("总结|總結|概括|摘要", "要約(?:して)?|まとめ(?:て)?", "요약(?:해)?")
SHOW_UNSPACED = _whole(
    "显示|顯示|打开|打開|看看|给我看|給我看", "表示(?:して)?|見せて|開いて", "보여(?:줘)?|열어(?:줘)?"
)
AROUND_AN_ACT = " を을를하기해して的"
"""What an act leaves behind at either end of its object, where nothing is put between words."""

_NOUN = r"(?:conversation|chat|session|discussion|talk|thread|dialogue|one)s?"
_NOUN_UNSPACED = "(?:对话|對話|会话|會話|聊天记录|聊天|会話|対話|チャット|やりとり|대화|채팅)"
CONVERSATION = _whole(
    rf"\b{_NOUN}\b", r"gespräch|unterhaltung|conversaci[oó]n|charla|разговор|бесед|чат", _NOUN_UNSPACED
)
THE_CONVERSATION_ABOUT = _whole(rf"(?:的|の|에 관한|에 대한)?{_NOUN_UNSPACED}[を을를은는]?|关于|關於")
SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?。！？]+(?=\s|$)|[。！？]+|\n+|$|[.!?]+)")
MARKED_QUESTION = re.compile(r"[?？؟][\"'”’)\s]*$")
_AUXILIARY = r"(?:did|do|does|is|are|was|were|have|has|had|can|could|shall|should|would|will)(?:n'?t)?"
_PERSON = r"(?:i|we|you|he|she|it|they|there|the|my|our|your|that|this)"
QUESTION = re.compile(
    _either(
        rf"(?:what|which|whose)(?: [\w-]+){{0,2}} {_AUXILIARY}",
        rf"(?:who|when|where|why|how) {_AUXILIARY}|what's|who's|where's|when's|how's",
        rf"how (?:many|much|often|long|old|far|big|tall|late|soon)(?: [\w-]+){{0,2}} {_AUXILIARY}",
        rf"{_AUXILIARY} {_PERSON}",
        r"(?:find|search|look|ask|tell me|remind me|do you (?:know|remember))",
        r"(?:suche?|finde|cherche|trouve|busca|encuentra|найди|поищи)",
    )
    + r"\b",
    re.IGNORECASE,
)
"""What asks without a mark behind it; other languages than English are recognised by the mark."""
LIST = _whole(
    r"list(?: all| everything| them)*",
    r"(?:list|show|display|see|give|what|which)?(?: me)?"
    r"(?: all| of| the| my| our| your| recent| last| latest| past| previous| old| earlier)*"
    r" ?(?:conversations|chats|sessions|discussions|threads|history)"
    r"(?: (?:do i have|are there|did (?:i|we) have|have (?:i|we) had|i had|we had|so far))?",
    r"what (?:did|have) (?:i|we) (?:talk|speak|chat|discuss|do|talked|discussed|done)(?: about)?",
    r"(?:liste|zeige?|welche)?(?: mir)?(?: alle| meine| die| letzten)* ?gespräche",
    r"(?:la )?liste (?:des|mes) conversations|mes conversations",
    r"(?:lista (?:de )?)?(?:mis|las) conversaciones",
    r"(?:список|покажи|перечисли|мои)(?: все| мои| моих)* (?:разговоров|разговоры|бесед|беседы|чатов|чаты)",
    r"(?:列出|显示|顯示|查看)?(?:我的|所有|全部|最近)*的?(?:对话|對話|会话|會話|聊天)(?:记录|記錄|列表)?",
    r"会話の?(?:一覧|リスト)(?:を表示|を見せて)?|대화 ?목록",
)
LATEST = _whole(
    rf"(?:the |my |our )?(?:very )?(?:last|latest|most recent|newest|previous)(?: {_NOUN})?(?: we had| i had)?",
    r"(?:das |meine? )?letzte[sn]?(?: gespräch| chat)?",
    r"la derni[eè]re(?: conversation)?|la [uú]ltima(?: conversaci[oó]n)?",
    r"последн\w+(?: разговор| чат| беседу)?",
    r"上一个|上一個|上次的?|最近的?|最新|前回の?|最後|지난|마지막",
)
THAT = _whole(rf"(?:with )?(?:it|that|this|there|here|(?:that|this|the) {_NOUN})?")


def _days(unspaced: str, *lines: str) -> re.Pattern[str]:
    before = r"(?:\b(?:from|of|in|on|since|von|de|d[eu]l?|за)\s+)?(?<!\w)"
    return re.compile(rf"{before}{_either(*lines)}(?:['’]s)?(?!\w)|(?:{unspaced})[の的의]?", re.IGNORECASE)


YESTERDAY = _days("昨天|昨日|어제", r"yesterday|gestern|d'hier|hier(?=\W*$)|ayer|вчера(?:шн\w+)?")
TODAY = _days("今天|今日|오늘", r"today|heute|aujourd'hui|hoy|сегодня(?:шн\w+)?")
THIS_WEEK = _days(
    "上周|上週|这周|這週|本周|先週|今週|지난주|이번 ?주",
    r"(?:last|this|past) week|(?:letzte|diese|vorige)[rn]? woche",
    r"(?:cette|la) semaine(?: derni[eè]re| pass[eé]e)?|esta semana|la semana pasada",
    r"(?:на )?(?:прошлой|этой) неделе",
)

NUMBERED = _whole(
    rf"(?:with |the |number |no\.? |nr\.? |n[°º] ?|num[eé]ro |номер |das |die |den |la |le |el |{_NOUN} )*#?"
    r"(?P<spaced>\d{1,2}|[^\W\d]+|\d(?:st|nd|rd|th))"
    rf"(?: {_NOUN}| gespräch| conversaci[oó]n| разговор)?",
    r"第?\s*(?P<dense>\d{1,2}|[一二两三四五六七八九十])\s*(?:个|個|条|條|つ目|番目|番|号|號)の?",
    r"(?P<korean>\d{1,2}|첫|두|세|네|다섯)\s*번(?:째)?",
)
_COUNTED = (
    "1st first one erste ersten erstes premier première premiere primero primera первый первую первое 一 첫",
    "2nd second two zweite zweiten zweites deuxième deuxieme seconde segundo segunda второй вторую 二 两 두",
    "3rd third three dritte dritten drittes troisième troisieme tercero tercera третий третью третье 三 세",
    "4th fourth four vierte vierten quatrième quatrieme cuarto cuarta четвёртый четвертый 四 네",
    "5th fifth five fünfte fünften cinquième cinquieme quinto quinta пятый пятую 五 다섯",
    "6th sixth six 六",
    "7th seventh seven 七",
    "8th eighth eight 八",
    "9th ninth nine 九",
    "10th tenth ten 十",
)
ORDINALS = {word: number for number, words in enumerate(_COUNTED, 1) for word in words.split()}
