"""What a batch is called, which lanes are its own, and what is not asked under a known id."""

import pytest

from segue.core.batches import Line, checked_name, inbound_of, lanes_of, name_after, refuse_another
from segue.core.errors import Invalid
from segue.core.inbound import kept
from segue.core.inbox import ERASED, Entry, Want
from segue.core.keys import KeyRules, Task, build_key, is_isolated, parse_key, place_of
from segue.core.policy import NEVER, ResetPolicies
from segue.core.principals import principal_of, scope_in
from segue.core.scope import OWNER, Scope
from segue.core.sessions import Kind, kind_of
from segue.sessions.accepting import entry_in_lane
from segue.sessions.opening import policy_of

TEA = Line(3, "tea", "Is there tea?", "main")


def put_down(line: Line, name: str = "drinks") -> Entry:
    return entry_in_lane(kept(inbound_of(name, line)), KeyRules(), "main", Want.PLAIN, 1.0)


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("prompts", "prompts"),
        ("2026-11_a.b", "2026-11_a.b"),
        ("Meine Fragen", "meine-fragen-2682ea23"),
        ("meine fragen", "meine-fragen-f40aef54"),
        ("日本語", "77710aed"),
        ("-", "3973e022"),
    ],
)
def test_a_batch_is_called_as_its_file_and_names_that_differ_stay_two(stem: str, name: str) -> None:
    assert name_after(stem) == name == checked_name(name_after(stem))


@pytest.mark.parametrize("stem", ["x" * 65, "Ä" * 300, "a" * 60 + " b", "...", "a:b/c", "\ud800"])
def test_whatever_a_file_is_called_makes_a_name(stem: str) -> None:
    assert checked_name(name_after(stem))
    assert name_after(stem) != name_after(stem + "!")


@pytest.mark.parametrize("name", ["", "Tea", "a b", "-a", "a" * 65, "a:b"])
def test_what_makes_no_name_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="cannot name a batch"):
        checked_name(name)


def test_each_line_has_a_lane_of_its_own_that_is_the_owners_and_never_resets() -> None:
    source = inbound_of("drinks", TEA).source
    place = place_of(source, KeyRules())
    assert place == Task("batch", ("drinks", "tea"))
    key = build_key(place)
    assert key == "agent:main:batch:drinks:tea"
    assert parse_key(key) == place
    assert is_isolated(key)
    assert scope_in(place, principal_of(source, KeyRules())) == Scope(OWNER)
    assert policy_of(place, source, ResetPolicies()) is NEVER
    assert kind_of(source.platform) is Kind.AUTOMATION


def test_a_line_gives_no_commands_and_shares_its_turn_with_none() -> None:
    entry = put_down(TEA._replace(prompt="/restart"))
    assert (entry.want, entry.is_person, entry.route) == (Want.QUEUED, 0, None)
    assert (entry.platform, entry.account, entry.chat, entry.message_id, entry.edit) == (
        "batch",
        "",
        "drinks",
        "tea",
        "",
    )


@pytest.mark.parametrize(
    ("key", "is_ours"),
    [
        ("agent:main:batch:drinks:tea", True),
        ("agent:other:batch:drinks:1%3A2", True),
        ("agent:main:batch:drinks2:tea", False),
        ("agent:main:cron:drinks", False),
        ("agent:main:telegram:dm:1", False),
    ],
)
def test_the_lanes_of_a_batch_are_known(key: str, is_ours: bool) -> None:
    assert lanes_of("drinks")(key) is is_ours


def test_under_a_known_id_only_the_same_is_asked() -> None:
    known = put_down(TEA)
    refuse_another(TEA, known, "drinks")
    refuse_another(TEA._replace(number=9), known, "drinks")
    with pytest.raises(Invalid, match=r"Line 3 \('tea'\) has another prompt than .* 'drinks'"):
        refuse_another(TEA._replace(prompt="Is there coffee?"), known, "drinks")
    with pytest.raises(Invalid, match="has another agent than"):
        refuse_another(TEA._replace(agent="barista"), known, "drinks")
    refuse_another(TEA._replace(prompt="Is there coffee?"), known._replace(text="", origin=ERASED), "drinks")


def test_what_no_database_holds_in_a_prompt_makes_no_other_prompt_of_it() -> None:
    odd = TEA._replace(prompt="nul \x00 and \ud800")
    assert put_down(odd).text != odd.prompt
    refuse_another(odd, put_down(odd), "drinks")
