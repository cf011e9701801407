r"""Secrets in text: found, counted, and replaced by `[redacted: <kind>]`.

Every rule lives in the table `_RULES`, read top to bottom: where two rules claim the same characters, the upper one
names them and the union of both goes. A mark that is already there is no text to any rule, so redacting twice is
redacting once.

No rule may look far and then fail: it starts at a literal or at the edge of what it repeats, it repeats possessively
(`*+`), and it looks ahead a bounded way. That keeps the time in proportion to the text, whatever the text is.

Most texts hold no secret, so each rule names hints: literals of which a text must hold at least one before the rule can
match in it. A rule is only tried on texts that hold a hint of it, which is what makes ordinary text cheap.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

Span = tuple[int, int]


class Secret(NamedTuple):
    """Where a secret stands in a text."""

    kind: str
    start: int
    end: int


def redact(text: str) -> str:
    """The same text with every secret replaced by `[redacted: <kind>]`."""
    while secrets := find_secrets(text):  # what stood beside a secret may stand alone once that is gone
        text = "".join(_pieces(text, secrets))
    return text


def redact_values(value: Any, name: str = "") -> Any:
    """The same JSON value with every secret in its texts replaced; a text may be one by the name it stands under."""
    if isinstance(value, str):
        plain = redact(value)
        return "[redacted: named]" if plain == value and _is_named(name, value) else plain
    if isinstance(value, dict):
        return {key: redact_values(one, str(key)) for key, one in value.items()}
    return [redact_values(one, name) for one in value] if isinstance(value, list) else value


def count_secrets(text: str) -> int:
    """How many secrets are in the text. Those already redacted are not counted."""
    return len(find_secrets(text))


def count_in_values(value: Any, name: str = "") -> int:
    """How many secrets are in the texts of a JSON value: none means that `redact_values` leaves it as it is."""
    if isinstance(value, str):
        return count_secrets(value) or int(_is_named(name, value))
    if isinstance(value, dict):
        return sum(count_in_values(one, str(key)) for key, one in value.items())
    return sum(count_in_values(one, name) for one in value) if isinstance(value, list) else 0


class Secrets:
    """Counts the secrets in the values it is shown and, if it redacts, gives them back without."""

    def __init__(self, *, redacts: bool) -> None:
        self.redacts = redacts
        self.count = 0

    def __call__(self, value: Any, name: str = "") -> Any:
        try:
            found = count_in_values(value, name)
            shown = redact_values(value, name) if found and self.redacts else value
        except RecursionError:  # nested almost as deeply as JSON can be read: taken as the text that it is
            text = self(json.dumps(value, ensure_ascii=False), name)
            return text if self.redacts else value
        self.count += found
        return shown


def _is_named(name: str, value: str) -> bool:
    """Whether a text is a secret by the name it stands under."""
    may_be = bool(name) and (_is_telling(name) or _LONG_WORD.match(value) is not None)
    return may_be and bool(find_secrets(f'{name}="{value[:_NAMED]}"'))


@lru_cache(maxsize=1000)
def _is_telling(name: str) -> bool:
    return bool(_worth_trying(f"{name}="))


def find_secrets(text: str) -> list[Secret]:
    """The secrets in the text, in order and apart from each other."""
    if len(text) < _SHORTEST_KEY and text.isidentifier():
        return []
    unmarked = _MARK.sub(_fill, text)
    claims = [
        (start, end, rank)
        for rank in _worth_trying(unmarked)
        for match in _RULES[rank].pattern.finditer(unmarked)
        if (span := _RULES[rank].judge(match)) is not None
        for start, end in [span]
    ]
    joined: list[tuple[int, int, int]] = []
    for start, end, rank in sorted(claims):
        if joined and start < joined[-1][1]:
            first, last, upper = joined[-1]
            joined[-1] = (first, max(last, end), min(upper, rank))
        else:
            joined.append((start, end, rank))
    return [Secret(_RULES[rank].kind, start, end) for start, end, rank in joined]


def _worth_trying(text: str) -> set[int]:
    """The ranks of the rules that may find something in the text."""
    ranks = _hinted(text, _IN_TEXT)
    if long_words := " ".join([word for word in text.split() if len(word) >= _SHORTEST_KEY]):
        ranks |= _hinted(long_words, _IN_LONG_WORDS)
    return {rank for rank in ranks if not (looks := _RULES[rank].looks) or any(look.search(text) for look in looks)}


def _hinted(text: str, groups: "list[_Group]") -> set[int]:
    folded = text.casefold().replace("ı", "i")  # a pattern that ignores case takes one for the other
    found: set[int] = set()
    for sign, as_written, in_any_case in groups:
        if sign in text:
            for hint, ranks in as_written:
                if hint in text:
                    found |= ranks
            for hint, ranks in in_any_case:
                if hint in folded:
                    found |= ranks
    return found


def _pieces(text: str, secrets: list[Secret]) -> Iterator[str]:
    at = 0
    for secret in secrets:
        yield text[at : secret.start]
        yield f"[redacted: {secret.kind}]"
        at = secret.end
    yield text[at:]


# What a mark is read as: a noncharacter, which is neither a letter nor a space nor a delimiter.
_FILLER = "\ufdd0"


def _fill(mark: re.Match[str]) -> str:
    return _FILLER * len(mark[0])


# Judges: which characters of a match are the secret, or None when it is not one.


def _whole(match: re.Match[str]) -> Span | None:
    return match.span("secret" if "secret" in match.re.groupindex else 0)


def _unless_placeholder(match: re.Match[str]) -> Span | None:
    return None if _PLACEHOLDER.fullmatch(match["secret"]) else match.span("secret")


def _if_closed(match: re.Match[str]) -> Span | None:
    return None if match["end"] is None else match.span()


def _if_random(match: re.Match[str]) -> Span | None:
    return match.span("secret") if _is_random(match["secret"]) else None


def _if_random_and_unexplained(match: re.Match[str]) -> Span | None:
    name = _NAME.search(match.string, max(0, match.start() - _NAME_REACH), match.start())
    return None if name is None or _HARMLESS_NAME.search(name["name"]) else _if_random(match)


def _password(match: re.Match[str]) -> Span | None:
    return _assigned(match, may_be_a_word=True)


def _token(match: re.Match[str]) -> Span | None:
    return _assigned(match, may_be_a_word=False)


def _assigned(match: re.Match[str], *, may_be_a_word: bool) -> Span | None:
    """The value of an assignment. A password may be a word of the language; a token hardly ever is."""
    is_quoted = match["quoted"] is not None
    value = match["quoted"] if is_quoted else match["bare"].rstrip(_CLOSING)
    start = match.start("quoted" if is_quoted else "bare")
    span = (start, start + len(value))
    if _PLACEHOLDER.fullmatch(value) or (value.isdecimal() and len(value) < (4 if may_be_a_word else 10)):
        return None
    if is_quoted:
        return span if may_be_a_word or len(value) > 5 or not value.isalpha() else None
    if _CODE.match(match["bare"]):
        return None
    if not _WORD.fullmatch(value):
        return span if may_be_a_word or len(value) > 3 else None
    if match.string[span[1] : span[1] + 1] in (",", ")"):  # an argument of a call is a name
        return None
    if match["sign"] == "=" and not match["before"] and not match["gap"]:
        return span
    return span if may_be_a_word and _fills_its_line(match, span[1]) else None


def _fills_its_line(match: re.Match[str], end: int) -> bool:
    """Whether the assignment has its line to itself, which tells a configuration from a sentence or from code."""
    if match["sign"] == "=" and "_" in match["bare"]:
        return False
    before = match.string[max(0, match.start() - _NAME_REACH) : match.start()]
    is_cut = len(before) == _NAME_REACH and "\n" not in before
    return not is_cut and bool(_LINE_START.search(before)) and bool(_LINE_END.match(match.string, end))


def _is_random(value: str) -> bool:
    """Whether the characters look drawn by lot: all classes, high entropy, and classes that change often."""
    classes = ["A" if char.isupper() else "a" if char.islower() else "0" for char in value[:_SAMPLE] if char.isalnum()]
    if len(set(classes)) < 3:
        return False
    changes = sum(one != other for one, other in pairwise(classes))
    return changes >= _LEAST_CHANGES * len(classes) and _entropy(value[:_SAMPLE]) >= _LEAST_ENTROPY


def _entropy(value: str) -> float:
    """Shannon's, in bits a character."""
    shares = (times / len(value) for times in Counter(value).values())
    return -sum(share * math.log2(share) for share in shares)


_SAMPLE = 200
_LEAST_ENTROPY = 3.7
_LEAST_CHANGES = 0.38
_NAME_REACH = 60
_SHORTEST_KEY = 15  # characters; a name with its value may be shorter, but is no identifier
_NAMED = 256  # characters of a value that are read together with its name
_CLOSING = ".,;:!?)]}>*|\\\"'`"

# Each begins with a set of first letters, which a search skips to; the words follow from there.
_KEY_OWNERS = "api|app|access|secret|private|auth|account|encryption|signing|master|service|webhook|shared"
_SECRET_NAMES = (
    r"[sStTcCkK](?i:(?<=s)ecret|(?<=t)oken|(?<=c)redential|(?<=k)ey(?:"
    + "|".join(rf"(?<={owner}key)|(?<={owner}[ _-]key)" for owner in _KEY_OWNERS.split("|"))
    + "))"
)
_PASSWORD_NAMES = (
    r"[pPcCmMsSпП密パ비](?i:(?<=p)ass(?:word|wd|phrase|code|wort|(?<=[_-]pass)|(?<=dbpass)|(?<=userpass))|(?<![a-z]p)wd"  # noqa: S105
    r"|(?<=c)ontraseña|(?<=m)ot[ ]de[ ]passe|(?<=s)enha|(?<=п)ароль|(?<=密)[码碼]|(?<=パ)スワード|(?<=비)밀번호)"
)

_SECRET_HINTS = ("secret", "token", "credential", "key")
_PASSWORD_HINTS = ("pass", "pwd", "contraseña", "senha", "пароль", "密码", "密碼", "パスワード", "비밀번호")

_PLACEHOLDER = re.compile(
    rf"""(?ix)
      {_FILLER}* | \[?redacted\]? | [*•x.…_?#-]+ | <[^>]*>? | \|[+-]? | >[+-]? | \\
    | \$\{{.* | \$\(.* | \$[a-z_]\w* | %\w+% | %s | %\(\w+\)s | \#?\{{.*\}}+ | \[.*\]
    | !(?:secret|vault|env|ref|sub|getatt)\b.*
    | \w+://(?![^/]*@).* | (?:~|\.{{1,2}})?/(?:[a-z_.-]+\d*/)*[a-z_.-]*\d*
    | (?:please[ _-]?)?(?:change|replace|fill|set|put|insert|add|enter)[ _-]?(?:me|this|it|in|your|here)\b.*
    | (?:your|example|sample|dummy|fake|placeholder)[ _-].* | .*[ _-](?:here|placeholder)
    | (?:changeme|example|sample|dummy|fake|placeholder|default|todo|tbd|fixme|hidden|masked|omitted|removed)\d{{0,3}}
    | null | none | nil | undefined | true | false | yes | no | on | off | optional | required | empty | unset | unknown
    | str(?:ing)? | bytes | int(?:eger)? | bool(?:ean)? | number | float | any | object | text | char | varchar | uuid
    | type | self | this | value | val | var | input | env | pw | user | id | name | data | bearer | basic | digest
    | (?:[\w.-]{{0,40}}[_.-])?(?:{_SECRET_NAMES}|{_PASSWORD_NAMES}|pass|key)s?\d?
    | (?:os\.|process\.|import\.meta\.|deno\.|std::|system\.)?(?:get)?env(?:iron)?(?:[.(\[:].*)?
    | (?:secrets|vars|vault|op)[.:].*
    """
)
_LONG_WORD = re.compile(r"[A-Za-z0-9+/_=-]{20}")
_CODE = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*[\[(]|[A-Za-z_]+\)|[a-zA-Z_]+(?:(?:\.|::|->)[a-zA-Z_]+)+(?:\W|$)|[{(\[]")
_WORD = re.compile(r"[^\W\d]+(?:['’-][^\W\d]+)*")
_LINE_START = re.compile(r"(?:^|\n)[\s>*#{\"'-]*(?:export |set )?[\w.-]*\Z")
_LINE_END = re.compile(r"[ \t]{0,8}(?:#|\r?\n|\\n|\Z)")
_NAME = re.compile(r"""(?P<name>[A-Za-z_](?<![\w-].)[\w-]*+)[\\"'`\] \t:]{0,12}\Z""")
_HARMLESS_NAME = re.compile(
    r"(?i)(?:hash|sha\d*|digest|checksum|integrity|etag|fingerprint|public[_-]?key|pubkey|ssh-\w+|id|ids|cursor|nonce|ref"
    r"|image|img|icon|logo|avatar|src|href|ur[il]|link|path|file|class|classname|version|commit|slug|title|name)$"
)

# A value runs on to white space; a delimiter ends it only where something else plainly follows.
_BARE = (
    r"""(?>(?:[^\s"'`,;&<\\]|[,;&"'`](?![\s"'`,;&)\]}\\]|$|[\w .-]{1,40}["']?[:=])"""
    r"""|<(?![/A-Za-z!])|\\(?![nrt"'`\\]))+)"""
)
_VALUE = (
    r"""(?:[fFrRbBuU]?(?P<quote>\"{3}|'{3}|\\{0,3}["'`])"""
    r"(?P<quoted>(?>(?:(?!(?P=quote))(?:\\.|[^\n\\]))*))(?P=quote)"
    rf"""|\\{{0,3}}["'`]?(?P<bare>{_BARE}))"""
)
_TYPE = r"(?:Optional\[)?(?:str|bytes|string|String|SecretStr|&str|&'static str)\]?\??(?:[ ]?\|[ ]?None)?"
_SIGN = (
    r"""\\{0,3}["'`]?\]?\*{0,2}(?P<before>[ \t]{0,8})"""
    rf"(?P<sign>:[ ]?{_TYPE}[ ]?=|=>|:=|[:：＝](?![:=])|=(?![=~>]))"
    r"\*{0,2}(?P<gap>[ \t]{0,8})(?:(?i:bearer|basic)[ ])?"
)
_QUALIFIER = r"(?:[_-]?\d{1,2}|_(?:base|value|prod|production|staging|dev|test|live))?"
_ASSIGN = r"""\\{0,3}["'`]?\]?[ \t]{0,8}(?::=|=>|[:=](?![:=]))[ \t]{0,8}\\{0,3}["'`]?"""

_ASSIGNED = r"""(?![:=]|//)>?[ \t]{0,8}\\{0,3}["'`]?(?!sha\d)(?P<secret>[A-Za-z0-9+/_=-]{20,}+)"""
_FEW_WORDS = (
    r"s?[^\w\n]{1,4}(?:[a-zA-Z]{1,10}[^\w\n]{1,4}){0,3}(?!sha\d)"
    r"(?P<secret>(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{20,}+)"
)

_URL_PASSWORD = r"""://[^\s:/@"'<>]{0,256}:(?P<secret>[^\s"'<>/]{1,256})@"""  # noqa: S105

_PEM_BEGIN = r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_PEM_END = r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_BREAK = r"(?:\s|\\+[nr]|[>|\"',+])"  # between the lines of a key: also quoted, escaped or joined in a program
_PEM_LINE = (
    r"(?:[A-Z][A-Za-z-]{2,20}: [^\n\\]*+|[A-Za-z0-9+/=]{16,}+|[A-Za-z0-9+/=]{0,15}(?=[0-9+/=])[A-Za-z0-9+/=]{1,15}+)"
)


def _pem(begin: str) -> str:
    """A whole block, or as much as is there of one that was cut."""
    return rf"{begin}(?:(?>(?:[^-]|-(?!----))*){_PEM_END}|(?>(?:(?>{_BREAK}{{1,20}}){_PEM_LINE})*))"


def _key(prefix: str, body: str) -> str:
    """A key that begins with the prefix. The literal comes first because the search for one is fast."""
    literal = re.escape(prefix)
    return rf"{literal}(?<![A-Za-z0-9]{literal})(?=[a-z_.-]{{0,64}}[A-Z0-9]){body}"


class _Rule(NamedTuple):
    kind: str
    pattern: re.Pattern[str]
    judge: Callable[[re.Match[str]], Span | None]
    hints: tuple[str, ...]
    """What a text holds one of where the pattern matches. One in small letters stands for any case of them."""
    looks: tuple[re.Pattern[str], ...]
    """Patterns that cost less; if there are any, one of them is found wherever the rule's own is."""
    is_one_word: bool
    """Whether the pattern matches no white space, and never less than the shortest key."""


def _rule(
    kind: str,
    pattern: str,
    judge: Callable[[re.Match[str]], Span | None] = _whole,
    *,
    hints: str | tuple[str, ...],
    looks: tuple[str, ...] = (),
    is_one_word: bool = False,
) -> _Rule:
    said = (hints,) if isinstance(hints, str) else hints
    return _Rule(kind, re.compile(pattern), judge, said, tuple(map(re.compile, looks)), is_one_word)


def _keys(kind: str, prefixes: str, body: str) -> list[_Rule]:
    return [_rule(kind, _key(prefix, body), hints=prefix, is_one_word=True) for prefix in prefixes.split()]


_RULES = (
    # Blocks
    _rule(
        "service account key",
        r'"private_key\\{0,3}"\s{0,8}:\s{0,8}\\{0,3}"(?P<secret>-----BEGIN[^"]*+)',
        hints="-----BEGIN",
    ),
    _rule("SSH private key", _pem("-----BEGIN OPENSSH PRIVATE KEY-----"), hints="-----BEGIN"),
    _rule("PGP private key", _pem("-----BEGIN PGP PRIVATE KEY BLOCK-----"), hints="-----BEGIN"),
    _rule("private key", _pem(_PEM_BEGIN), hints="-----BEGIN"),
    _rule(
        "private key",
        rf"(?<![A-Za-z0-9+/=])(?>(?:[A-Za-z0-9+/]{{16,}}+={{0,2}}+(?:\r?\n|\\n))+)"
        rf"(?>(?:[A-Za-z0-9+/=]{{1,76}}+(?:\r?\n|\\n))?)(?>(?P<end>{_PEM_END})?)",
        _if_closed,
        hints="-----END",
    ),
    _rule(
        "SSH private key", r"Private-Lines: \d{1,4}(?P<secret>(?>(?:\r?\n[A-Za-z0-9+/=]{4,}+)+))", hints="Private-Lines"
    ),
    # Keys that show whose they are
    *_keys("Anthropic key", "sk-ant-", r"[\w-]{16,}+"),
    *_keys("OpenAI key", "sk-proj- sk-svcacct- sk-admin- sk-", r"[\w-]{20,}+"),
    *_keys("Segue token", "segue_", r"[0-9a-f]{8}_[0-9a-f]{32,}+"),
    *_keys("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{30,}+"),
    *_keys("GitHub token", "github_pat_", r"\w{22,}+"),
    *_keys("GitLab token", "glpat- gldt- glrt- glcbt- glptt-", r"[\w.-]{18,}+"),
    *_keys("Slack token", "xoxa- xoxb- xoxp- xoxr- xoxs- xoxe- xoxe. xapp-", r"[\w.-]{10,}+"),
    _rule(
        "Slack webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/-]{16,}+)",
        hints="hooks.slack.com/",
        is_one_word=True,
    ),
    _rule(
        "Discord webhook",
        r"/api/(?:v\d{1,2}/)?webhooks/\d{15,22}/(?P<secret>[\w-]{30,}+)",
        hints="webhooks/",
        is_one_word=True,
    ),
    _rule(
        "Discord token",
        r"(?<![\w.-])[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,}+",
        hints=".",
        is_one_word=True,
        looks=(r"\.[\w-]{6}\.[\w-]{27}",),
    ),
    _rule("Telegram token", r"(?<!\d)\d{8,12}:AA[\w-]{30,}+", hints=":AA", is_one_word=True),
    *_keys("AWS key id", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _rule(
        "AWS secret key",
        rf"(?i:secret_?access_?key|aws_?secret_?key){_ASSIGN}(?P<secret>[A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+])",
        hints="secret",
    ),
    *_keys("Google key", "AIza", r"[\w-]{35,}+"),
    *_keys("Google token", "ya29.", r"[\w.-]{20,}+"),
    *_keys("Google token", "GOCSPX-", r"[\w-]{24,}+"),
    _rule(
        "Azure key",
        r"(?:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/]{40,}+={0,2})",
        hints=("AccountKey=", "AccessKey="),
        is_one_word=True,
    ),
    *_keys("Stripe key", "sk_live_ rk_live_ pk_live_ sk_test_ rk_test_ whsec_", r"[A-Za-z0-9+/]{16,}+=*"),
    *_keys("Twilio key", "SK AC", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    *_keys("SendGrid key", "SG.", r"[\w-]{16,32}\.[\w-]{16,}+"),
    *_keys("Mailgun key", "key-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    *_keys("npm token", "npm_", r"[A-Za-z0-9]{30,}+"),
    *_keys("PyPI token", "pypi-", r"[\w-]{40,}+"),
    *_keys("Docker token", "dckr_pat_ dckr_oat_", r"[\w-]{20,}+"),
    *_keys("Hugging Face token", "hf_", r"[A-Za-z0-9]{30,}+"),
    *_keys("Replicate token", "r8_", r"[A-Za-z0-9]{30,}+"),
    *_keys("Groq key", "gsk_", r"[A-Za-z0-9]{40,}+"),
    *_keys("xAI key", "xai-", r"[A-Za-z0-9]{40,}+"),
    *_keys("Perplexity key", "pplx-", r"[A-Za-z0-9]{40,}+"),
    *_keys("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{40,}+"),
    *_keys("Shopify token", "shpat_ shpss_ shpca_ shppa_", r"[0-9a-fA-F]{32,}+"),
    *_keys("Square token", "sq0atp- sq0csp- sq0idp-", r"[\w-]{22,}+"),
    *_keys("Square token", "EAAA", r"[\w-]{56,}+"),
    *_keys("Heroku key", "HRKU-", r"[\w-]{36,}+"),
    _rule(
        "Heroku key",
        rf"(?i:heroku)[\w-]{{0,30}}{_ASSIGN}(?P<secret>[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}})",
        hints="heroku",
    ),
    *_keys("Cloudflare key", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{100,}+"),
    *_keys("Cloudflare key", "cfk_ cfut_ cfat_", r"[A-Za-z0-9]{40,}+"),
    *_keys("Databricks token", "dapi", r"[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"),
    *_keys("Vault token", "hvs. hvb. hvr.", r"[\w-]{20,}+"),
    *_keys("Linear key", "lin_api_", r"[A-Za-z0-9]{32,}+"),
    *_keys("Notion token", "secret_ ntn_", r"[A-Za-z0-9]{40,}+"),
    *_keys("Figma token", "figd_", r"[\w-]{20,}+"),
    *_keys("Atlassian token", "ATATT ATCTT", r"[\w=-]{40,}+"),
    _rule("JWT", r"(?<![\w-])eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+)?", hints="eyJ", is_one_word=True),
    # Keys that show what they are for
    _rule(
        "authorization",
        r"""(?i:authorization)\\{0,3}["']?\s{0,8}[:=,]\s{0,8}\\{0,3}["']?"""
        r"""(?i:bearer|basic|token|digest|apikey)[ ]{1,8}(?P<secret>[^\s"'`\\,;<>]++)""",
        _unless_placeholder,
        hints="authorization",
    ),
    _rule(
        "authorization",
        r"(?i:bearer)[ ]{1,8}(?=[A-Za-z._~+/-]{0,64}\d)(?P<secret>[\w.~+/-]{20,}+=*)",
        hints="bearer",
    ),
    _rule(
        "connection password",
        r"(?:postgres|postgresql|mysql|mariadb|mongodb|redis|rediss|amqp|amqps|mssql|oracle|clickhouse|cockroachdb|nats|ldap|smtp)"
        rf"(?:\+\w{{1,20}})?{_URL_PASSWORD}",
        _unless_placeholder,
        hints="://",
        looks=(_URL_PASSWORD,),
    ),
    _rule("URL password", _URL_PASSWORD, _unless_placeholder, hints="://"),
    _rule(
        "URL parameter",
        r"[?&](?i:(?:[a-z]{1,20}[_-]){0,2}(?:token|key|secret|sig|signature|password|passwd|pwd|apikey|auth))"
        r"""=(?P<secret>[^\s&#"'<>`)\]\\]++)""",
        _unless_placeholder,
        hints=("?", "&"),
        looks=(r"[?&][\w-]{3,60}=",),
    ),
    _rule("password", rf"<(?:{_PASSWORD_NAMES})>(?P<secret>[^<\n]{{1,256}}+)</", _unless_placeholder, hints="</"),
    _rule("secret", rf"<(?:{_SECRET_NAMES})>(?P<secret>[^<\n]{{1,256}}+)</", _unless_placeholder, hints="</"),
    _rule("password", rf"(?:{_PASSWORD_NAMES}){_QUALIFIER}{_SIGN}{_VALUE}", _password, hints=_PASSWORD_HINTS),
    _rule("secret", rf"(?:{_SECRET_NAMES}){_QUALIFIER}{_SIGN}{_VALUE}", _token, hints=_SECRET_HINTS),
    _rule(
        "password",
        rf"""--(?:[a-z]{{1,20}}-){{0,2}}(?:{_PASSWORD_NAMES})(?P<before>)(?P<sign>[ ])(?P<gap>){_VALUE}""",
        _password,
        hints=_PASSWORD_HINTS,
    ),
    _rule(
        "secret",
        rf"""--(?:[a-z]{{1,20}}-){{0,2}}(?:{_SECRET_NAMES})(?P<before>)(?P<sign>[ ])(?P<gap>){_VALUE}""",
        _token,
        hints=_SECRET_HINTS,
    ),
    # Strings that only their disorder gives away
    _rule(
        "secret",
        rf"[:=]{_ASSIGNED}",
        _if_random_and_unexplained,
        hints=(":", "="),
        looks=(f":{_ASSIGNED}", f"={_ASSIGNED}"),  # a search for one literal is much faster than for either
    ),
    _rule("secret", rf"(?:{_SECRET_NAMES}){_FEW_WORDS}", _if_random, hints=_SECRET_HINTS),
    _rule("secret", rf"(?:{_PASSWORD_NAMES}){_FEW_WORDS}", _if_random, hints=_PASSWORD_HINTS),
    _rule("secret", rf"[kK]ey(?<![A-Za-z0-9]...){_FEW_WORDS}", _if_random, hints="key"),
)

_MARK = re.compile(rf"\[redacted: (?:{'|'.join(sorted({re.escape(rule.kind) for rule in _RULES}))})\]")


_Hints = list[tuple[str, set[int]]]
_Group = tuple[str, _Hints, _Hints]
"""Hints that hold the same sign, as written and in any case, each with the ranks of its rules. Without the sign in a
text, none of them is in it."""


def _grouped(rules: list[tuple[int, _Rule]]) -> list[_Group]:
    groups: list[_Group] = [(sign, [], []) for sign in ("_", "-", "/", "")]
    for hint in dict.fromkeys(hint for _, rule in rules for hint in rule.hints):
        _, as_written, in_any_case = next(group for group in groups if group[0] in hint)
        ranks = {rank for rank, rule in rules if hint in rule.hints}
        (in_any_case if hint.islower() else as_written).append((hint, ranks))
    return groups


_IN_TEXT = _grouped([(rank, rule) for rank, rule in enumerate(_RULES) if not rule.is_one_word])
_IN_LONG_WORDS = _grouped([(rank, rule) for rank, rule in enumerate(_RULES) if rule.is_one_word])
