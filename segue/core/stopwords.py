"""Words that a question is made of, and that do not say what it is about.

Languages that share a script are told apart by which one has the most such words in the text: `die` is an article in
German and what a process does in English. A text that would have nothing left keeps everything.
"""

import re
from collections.abc import Iterator

from segue.core.tokens import fold, is_dense, tokens_of

_SPACED = {
    "en": """
        a an the and or but of in on at to from for with by about into over as than then so if is are was were be been
        am do does did done have has had having can could will would shall should may might must i me my mine we us our
        you your he him his she her it its they them their this that these those there here what which who whom whose
        when where why how not no any some all also just again ever please thanks thank hello hi hey ok okay let lets
        s t d ll re ve m
    """,
    "de": """
        der die das den dem des ein eine einen einem einer und oder aber von in im am an auf zu zum zur mit für fur bei
        nach über uber um als wie ist sind war waren sein bin habe hat haben hatte hatten wird werden wurde kann kannst
        können konnen soll muss ich mich mir mein meine meinen wir uns unser unsere unseren du dich dir dein deine er
        sie es ihr ihn ihm sich was welche welcher welches wer wen wem wann wo warum wieso nicht kein keine noch schon
        auch bitte danke hallo denn mal doch
    """,
    "fr": """
        le la les l un une des du de d et ou mais à a au aux en dans sur sous pour par avec sans chez est sont était
        etait été ete être etre ai as avons avez ont avait je j me m mon ma mes nous notre nos tu te t ton ta tes vous
        votre vos il elle ils elles on se s son sa ses ce cet cette ces ça ca que qu quoi quel quelle quels quelles qui
        quand où pourquoi comment combien ne n pas plus y svp merci bonjour salut plaît plait
    """,
    "es": """
        el la los las un una unos unas de del y o pero a al en con por para sin sobre es son era eran ser está esta
        están estan estaba he ha hemos han había habia yo me mi mis nosotros nos nuestro nuestra tú tu tus te él ella
        ellos se su sus lo le que qué cual cuál quien quién cuando cuándo donde dónde como cómo cuanto cuánto cuánta
        porqué no más mas este ese favor gracias hola
    """,
    "ru": """
        и или но а в во на с со у о об от до из за по к ко для при над под без про это эта этот эти тот та те то был
        была было были есть быть я мне меня мой моя мои моё мы нам нас наш наша наши ты тебе твой вы вам вас ваш он она
        они его её ее их что кто кого кому какой какая какие каком когда где куда откуда почему зачем как сколько не ни
        ли бы же уже ещё еще пожалуйста спасибо привет
    """,
}
"""By language, as words are written; accents that people leave away are left away here too."""

_ABOUT_TALKING = {
    "en": """
        talk talked talking discuss discussed discussion say said saying tell told mention mentioned remember recall
        know conversation conversations chat chats session sessions note notes find search look looking show give need
        want wanted one ones discussion discussions thread threads talks called named titled
    """,
    "de": """
        gesprochen geredet besprochen gesagt erzählt erwähnt gespräch gespräche unterhaltung chat notizen finde suche
        such zeig fort zusammen
    """,
    "fr": "parlé parle dit discuté discute conversation conversations notes trouve cherche montre retrouve",
    "es": "hablamos hablado hablé dijimos dicho conversación conversaciones notas encuentra busca muestra buscar",
    "ru": "говорили говорил обсуждали сказал сказали разговор разговоры беседа чат заметки найди поищи покажи",
}
_BETWEEN = {  # of what is written without spaces, what joins the words that matter; the longer first
    "zh": """
        是什么时候 是什麼時候 什么时候 什麼時候 为什么 為什麼 怎么样 怎麼樣 是什么 是什麼 叫什么名字 叫什麼名字
        叫什么 叫什麼 怎么 怎麼 什么 什麼 是多少 多少 哪一天 哪里 哪裡 哪儿 哪家 哪个 哪個 哪些 几点 幾點 几号 幾號
        是谁 谁 誰 有没有 有沒有 请问 請問 我们 我們 你们 你們 咱们 上次 帮我 幫我 能不能 可不可以 告诉我 告訴我
        记得 記得 还记得 说过 說過 说了 讨论过 討論過 讨论了 聊过 聊過 聊了 决定了 关于 關於 的对话 的對話 的聊天
        的会话 查找 搜索 寻找 找一下 一下 吗 嗎 呢 吧 的 了 是 在 我 你 请 請
    """,
    "ja": """
        について に関する に関して 教えてくれた 教えてください 教えて ください 覚えていますか 覚えて でしたか ましたか
        ですか ますか だっけ でしたっけ でした ました です どうして どのように どこに どこで どこ いつ 誰が 誰 だれ
        何曜日 何番 何時 何 なに なぜ どうやって どう どの どれ どちら いくらに いくら 話した 話しました 会話 を探して
        探して 検索して 見せて を見つけて 私たち 私 の名前は とき
    """,
    "ko": """
        뭐였지 뭐였어 뭐야 뭐지 무엇 언제야 언제 어디야 어디 누구 얼마야 얼마 어떻게 왜 우리가 우리 대해서 대해
        관한 관해 대화를 대화 찾아줘 찾아 검색 알려줘 말했지 말했어 이야기한 얘기한 했지 했어 내가 제가 나의
    """,
}

STOPS = {language: frozenset(map(fold, words.split())) for language, words in _SPACED.items()}
_TALK = {language: frozenset(map(fold, words.split())) for language, words in _ABOUT_TALKING.items()}
_GAPS = {
    language: re.compile("|".join(map(re.escape, sorted(words.split(), key=len, reverse=True))))
    for language, words in _BETWEEN.items()
}
_UNSPACED = re.compile("[\u3041-\u30fa\u3400-\u9fff\uac00-\ud7a3]")
_KANA, _HANGUL = re.compile("[\u3041-\u30fa]"), re.compile("[\uac00-\ud7a3]")
_BEHIND_A_NOUN = re.compile("(?<=[\u30a1-\u30fc\u4e00-\u9fff\u3005a-zA-Z0-9])[はがをにのへでともや]")
_PARTICLE = re.compile(
    "(?<=[\uac00-\ud7a3]{2})(?:에서|에게|한테|부터|까지|으로|이랑|은|는|이|가|을|를|에|의|로|와|과|도|만)$"
)
_TYPED = re.compile(r'"[^"]+"|\S+')
_SIGNS = re.compile(r"[^\w\s*'’-]")


def telling_words(text: str) -> list[str]:
    """The words of a text that say what it is about, as they were typed; all of them when none does."""
    typed = [str(one) for one in _TYPED.findall(text)]
    return _left_of(typed) or typed


def says_nothing(text: str) -> bool:
    """Whether a text has words, and none of them says what it is about."""
    return bool(tokens_of(fold(text))) and not _left_of([str(one) for one in _TYPED.findall(text)])


def is_telling(word: str) -> bool:
    """Whether a token says something, whatever the language."""
    return not any(word in words for words in STOPS.values()) and (len(word) > 1 or is_dense(word) or word.isdigit())


def _left_of(typed: list[str]) -> list[str]:
    empty = _empty_words(typed)
    return [word for one in typed for word in _told_by(one, empty)]


def _told_by(typed: str, empty: frozenset[str]) -> Iterator[str]:
    if typed.startswith('"'):
        yield typed
    elif _UNSPACED.search(typed):
        for piece in _without_gaps(_SIGNS.sub(" ", typed)).split():
            yield _PARTICLE.sub("", piece)
    elif (typed.isupper() and len(typed) > 1) or not empty.issuperset(tokens_of(fold(typed))):
        yield typed


def _empty_words(typed: list[str]) -> frozenset[str]:
    """The words that say nothing in the language that a text seems to be in."""
    words = [word for one in typed for word in tokens_of(fold(one))]
    language = max(STOPS, key=lambda language: sum(word in STOPS[language] for word in words))
    return STOPS[language] | _TALK[language]


def _without_gaps(text: str) -> str:
    if _HANGUL.search(text):
        return _GAPS["ko"].sub(" ", text)
    if _KANA.search(text):
        return _BEHIND_A_NOUN.sub(" ", _GAPS["ja"].sub(" ", text))
    return _GAPS["zh"].sub(" ", text)
