"""What people ask, as it is understood without a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.requests import (
    About,
    Days,
    Find,
    Greet,
    Help,
    Latest,
    List,
    Nth,
    Request,
    Resume,
    Show,
    Summarise,
    That,
    is_asked,
    understand,
)
from segue.core.stopwords import is_telling, telling_words


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("what did we decide about the cache?", Find("what did we decide about the cache?")),
        ("find my notes on lisbon", Find("find my notes on lisbon")),
        ("when did I talk about X", Find("when did I talk about X")),
        ("lisbon hotel", Find("lisbon hotel")),
        ("show jumping", Find("show jumping")),
        ("open port heron", Find("open port heron")),
        ("listen to the radio", Find("listen to the radio")),
        ("first aid kit", Find("first aid kit")),
        ("one", Find("one")),
        ("7", Find("7")),
        ("what did we decide yesterday about tea?", Find("what did we decide about tea", Days(1, 1))),
        ("我们昨天决定了什么缓存？", Find("我们 决定了什么缓存", Days(1, 1))),
        ("家里的无线网络密码是多少？", Find("家里的无线网络密码是多少？")),
        ("数据恢复方法", Find("数据恢复方法")),
        ("show the conversation about the garden", Show(About("the conversation about the garden"))),
        ("please show number 3", Show(Nth(3))),
        ("show me the last conversation", Show(Latest())),
        ("покажи разговор о саде", Show(About("разговор о саде"))),
        ("summarise yesterday's chat", Summarise(Days(1, 1))),
        ("Summarize the second one, please.", Summarise(Nth(2))),
        ("give me a short summary of the garden chat", Summarise(About("the garden chat"))),
        ("can you recap our last conversation?", Summarise(Latest())),
        ("résume la conversation sur le jardin", Summarise(About("la conversation sur le jardin"))),
        ("总结一下关于花园的对话", Summarise(About("一下 花园"))),
        ("花園についての会話を要約して", Summarise(About("花園について"))),
        ("정원에 관한 대화를 요약해 줘", Summarise(About("정원에 관한"))),
        ("resume 2", Resume(Nth(2))),
        ("Resume #2!", Resume(Nth(2))),
        ("continue the second one", Resume(Nth(2))),
        ("let's continue with the 3rd conversation", Resume(Nth(3))),
        ("resume the one about taxes", Resume(About("the one about taxes"))),
        ("resume the last one", Resume(Latest())),
        ("resume it", Resume(That())),
        ("resume", Resume(That())),
        ("setze das Gespräch über Steuern fort", Resume(About("das Gespräch über Steuern fort"))),
        ("reprends la deuxième", Resume(Nth(2))),
        ("continúa la primera", Resume(Nth(1))),
        ("продолжи второй", Resume(Nth(2))),
        ("继续第2个", Resume(Nth(2))),
        ("2番目を再開して", Resume(Nth(2))),
        ("2번 이어서", Resume(Nth(2))),
        ("list my conversations", List()),
        ("list", List()),
        ("show me all my recent chats", List()),
        ("what did we talk about yesterday?", List(Days(1, 1))),
        ("what did we discuss last week?", List(Days(7))),
        ("对话列表", List()),
        ("会話の一覧", List()),
        ("help", Help()),
        ("What can you do?", Help()),
        ("?", Help()),
        ("   ", Help()),
        ("hello", Greet()),
        ("Good morning!", Greet()),
        ("你好", Greet()),
        ("thanks a lot", Greet()),
    ],
)
def test_what_a_text_asks_for(text: str, request_: Request) -> None:
    assert understand(text) == request_


@pytest.mark.parametrize(
    ("text", "listed", "request_"),
    [
        ("2", 3, Show(Nth(2))),
        ("second", 3, Show(Nth(2))),
        ("the second one", 3, Show(Nth(2))),
        ("4", 3, Find("4")),
        ("0", 3, Find("0")),
        ("2", 0, Find("2")),
    ],
)
def test_a_number_alone_means_the_last_list_if_it_has_it(text: str, listed: int, request_: Request) -> None:
    assert understand(text, listed) == request_


def test_a_number_alone_answers_the_question_which_one() -> None:
    assert understand("2", 3, Resume) == Resume(Nth(2))
    assert understand("show 2", 3, Resume) == Show(Nth(2))


@given(st.text(max_size=400), st.integers(0, 10))
def test_every_text_is_a_request(text: str, listed: int) -> None:
    request = understand(text, listed)
    assert isinstance(request, Find | Show | Summarise | Resume | List | Help | Greet)
    assert not isinstance(request, Find) or request.text
    assert telling_words(text) or not text.strip()


@pytest.mark.parametrize("sign", ["!", " ", "the ", "a", "列", "list "])
def test_a_very_long_text_is_a_search_at_once(sign: str) -> None:
    request = understand("x" + sign * 200_000 + "x")
    assert isinstance(request, Find)
    assert len(request.text) <= 2_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("what did we decide about the cache?", ["decide", "cache?"]),
        ("When did I talk about Lisbon", ["Lisbon"]),
        ("Why did the billing job die with a KeyError?", ["billing", "job", "die", "KeyError?"]),
        ("Wann kommt die Firma zur Heizungswartung?", ["kommt", "Firma", "Heizungswartung?"]),
        ("Où est la clé du gîte ?", ["clé", "gîte"]),
        ("¿Cuándo vence el seguro del coche?", ["vence", "seguro", "coche?"]),
        ("У кого запасные ключи от дачи?", ["запасные", "ключи", "дачи?"]),
        ("奶奶的生日是哪一天？", ["奶奶", "生日"]),
        ("カメラの製造番号は何番？", ["カメラ", "製造番号"]),
        ("할아버지 제사는 언제야?", ["할아버지", "제사"]),
        ('find "the old mill"', ['"the old mill"']),
        ("IT department", ["IT", "department"]),
        ("what is it?", ["what", "is", "it?"]),
        ("ต้มยำกุ้ง", ["ต้มยำกุ้ง"]),
    ],
)
def test_a_question_is_looked_for_by_the_words_that_say_something(text: str, words: list[str]) -> None:
    assert telling_words(text) == words


def test_words_that_every_text_has_tell_nothing_of_it() -> None:
    assert [word for word in ("the", "und", "garden", "x", "7", "茶") if is_telling(word)] == ["garden", "7", "茶"]


@pytest.mark.parametrize(
    ("text", "is_question"),
    [
        ("what did we decide about the cache", True),
        ("which colour was it", True),
        ("Wie heißt meine Katze?", True),
        ("list", True),
        ("resume 2", True),
        ("find the green tea", True),
        ("The locker code is 4711", False),
        ("When the tide is low, the gate opens.", False),
        ("My cat is called Miso. What should she eat?", False),
        ("Is it late? Where is my hat?", True),
    ],
)
def test_what_only_asks_is_told_from_what_tells_something(text: str, is_question: bool) -> None:
    assert is_asked(text) is is_question
