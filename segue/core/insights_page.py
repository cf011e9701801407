"""Insights as one HTML page: no script, no network, light and dark, in a wide window and in a narrow one."""

from collections.abc import Iterator, Sequence
from html import escape

from segue.core.insights import WEEKDAYS, Group, Insights, Period, Span, cost_words, dollars, spans_of
from segue.core.plots import Bar, Column, bars, columns, heat_map
from segue.core.text import count, one_line, shorten

_MOST_COLUMNS = 92
_MOST_BARS = 15
_NAME = 80
_STYLE = """
:root { color-scheme: light dark; --page: #fbfaf8; --text: #1f2328; --dim: #6b7077; --line: #e3e0da; --card: #fff;
  --bar: #2f6f8f; --cost: #b07a12; --heat: #2c7a4b; --track: #f0ede8; }
@media (prefers-color-scheme: dark) { :root { --page: #16181c; --text: #dfe2e6; --dim: #939aa3; --line: #2d3138;
  --card: #1d2025; --bar: #72b4d3; --cost: #e0b04f; --heat: #6cc08b; --track: #262a30; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 2.5rem 1.25rem 4rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC", "PingFang SC",
  "Hiragino Sans", "Microsoft YaHei", sans-serif; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
h1, h2 { line-height: 1.25; margin: 0; text-wrap: balance; } h1 { font-size: 1.7rem; } h2 { font-size: 1.05rem;
  margin-bottom: .7rem; }
p { margin: 0; } .dim, .top, .ends, .days, .hours, footer { color: var(--dim); font-size: .85rem; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 1rem; margin: 1.5rem 0; }
dl div, section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.1rem; }
dt, dd span { color: var(--dim); font-size: .85rem; } dd { margin: 0; }
dd b { display: block; font-size: 1.5rem; line-height: 1.3; }
main { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem; } .wide { grid-column: 1 / -1; }
.cost { --bar: var(--cost); }
.plot svg { display: block; width: 100%; height: 9rem; fill: var(--bar); }
.plot .whole { fill: transparent; } .plot g:hover .whole { fill: var(--track); }
.plot .unknown { fill: var(--dim); } .rule { stroke: var(--line); vector-effect: non-scaling-stroke; fill: none; }
.top { margin-top: -.4rem; } .ends { display: flex; justify-content: space-between; margin-top: .25rem; }
.bars { list-style: none; margin: 0; padding: 0; } .bars li { display: grid; grid-template-columns: 1fr auto;
  gap: .1rem 1rem; margin-bottom: .65rem; } .bars .says { color: var(--dim); font-size: .85rem; text-align: end;
  align-self: end; } .track { grid-column: 1 / -1; height: .5rem; background: var(--track); border-radius: .25rem;
  overflow: hidden; } .track span { display: block; height: 100%; min-width: 1px; background: var(--bar); }
.track.cost { height: .25rem; }
.heat { display: grid; grid-template-columns: auto 1fr; gap: .3rem .6rem; --row: 1.5rem; }
.heat svg { display: block; width: 100%; height: calc(7 * var(--row)); fill: var(--heat); }
.heat .empty { fill: var(--track); } .days { display: grid; grid-auto-rows: var(--row); align-items: center; }
.hours { grid-column: 2; display: grid; grid-template-columns: repeat(8, 1fr); }
footer { margin-top: 1.5rem; } footer p + p { margin-top: .3rem; }
@media (max-width: 44rem) { body { padding: 1.2rem .7rem 3rem; } main { grid-template-columns: minmax(0, 1fr); }
  h1 { font-size: 1.4rem; } dl { gap: .6rem; } dl div, section { padding: .8rem; }
  .bars li { grid-template-columns: 1fr; } .bars .says { text-align: start; } }
@media print { :root { --page: #fff; --card: #fff; --text: #000; --dim: #555; } body { max-width: none; padding: 0; }
  section { break-inside: avoid; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def page_of(found: Insights, heading: str, period: Period) -> str:
    """The whole page."""
    title = escape(one_line(heading))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n"
        f'<p class="dim">{period.first} to {period.last:%A}, {period.last};'
        " days and hours as on the clock of this machine</p>\n"
        f"{_cards(found)}<main>\n{''.join(_sections(found, period))}</main>\n{_footer(found)}</body>\n</html>\n"
    )


def _cards(found: Insights) -> str:
    _, talk, used = found.total
    cached = f"{used.cache_read_tokens:,} from a cache, {used.cache_write_tokens:,} to one"
    unknown = f"unknown for {count(used.calls_without_cost, 'call')} with {count(used.tokens_without_cost, 'token')}"
    cards = [
        ("Sessions", f"{talk.sessions:,}", count(talk.messages, "message")),
        ("Model calls", f"{used.api_calls:,}", count(talk.tool_calls, "tool call")),
        ("Tokens in", f"{used.input_tokens:,}", cached),
        ("Tokens out", f"{used.output_tokens:,}", f"{used.reasoning_tokens:,} for reasoning"),
        ("Cost", _dollars(used.cost_usd), unknown if used.is_partly_unknown else "known of every call"),
    ]
    if used.is_none:
        cards[-1] = ("Cost", "none", "no model call is noted")
    shown = (f"<div><dt>{name}</dt><dd><b>{figure}</b><span>{says}</span></dd></div>\n" for name, figure, says in cards)
    return f"<dl>\n{''.join(shown)}</dl>\n"


def _sections(found: Insights, period: Period) -> Iterator[str]:
    if spans := spans_of(found.days, period, _MOST_COLUMNS):
        length = (spans[0].last - spans[0].first).days + 1
        each = "day" if length == 1 else f"{length:,} days"
        yield _section(f"Tokens per {each}", _tokens(spans), "wide")
        yield _section(f"Cost per {each}", _costs(spans), "wide cost")
    yield from _groups("Tokens and cost by model", found.models)
    yield from _groups("Tokens and cost by platform", found.sources)
    yield from _groups("Tokens and cost by purpose", found.purposes)
    if found.tools.total:
        tools = [Bar(_shown(name), calls, f"{calls:,}") for name, calls in found.tools.top(_MOST_BARS)]
        yield _section(f"Tools, {count(found.tools.total, 'call')}", bars(tools) + _rest(len(found.tools.calls)))
    if found.activity.total:
        title = f"{count(found.activity.total, 'message')} by weekday and hour"
        yield _section(title, heat_map(found.activity.grid, WEEKDAYS), "wide")


def _tokens(spans: Sequence[Span]) -> str:
    plotted = [Column(span.used.tokens, f"{_when(span)}: {count(span.used.tokens, 'token')}") for span in spans]
    most = max(span.used.tokens for span in spans)
    return columns(plotted, f"{most:,} at most", _ends(spans))


def _costs(spans: Sequence[Span]) -> str:
    known = [span.used.cost_usd for span in spans if span.used.cost_usd is not None]
    unknown = count(sum(span.used.tokens_without_cost for span in spans), "token")
    top = f"{dollars(max(known))} at most" if known else "unknown"
    if any(span.used.tokens_without_cost for span in spans):
        top += f"; a grey line marks a cost that is unknown, {unknown} in all"
    return columns([_cost(span) for span in spans], top, _ends(spans))


def _cost(span: Span) -> Column:
    unknown = bool(span.used.tokens_without_cost)
    is_used = unknown or span.used.cost_usd is not None
    words = cost_words(span.used.cost_usd, is_partly_unknown=unknown) if is_used else "nothing was used"
    return Column(span.used.cost_usd or 0.0, f"{_when(span)}: {words}", unknown)


def _groups(title: str, groups: Sequence[Group]) -> Iterator[str]:
    used = [group for group in groups if group.spending.api_calls or group.spending.tokens]
    if used:
        yield _section(title, bars([_group(one) for one in used[:_MOST_BARS]]) + _rest(len(used)))


def _group(group: Group) -> Bar:
    used = group.spending
    cost = cost_words(used.cost_usd, is_partly_unknown=used.is_partly_unknown)
    says = f"{count(used.tokens, 'token')} · {count(used.api_calls, 'call')} · {cost}"
    words = f"{says} cost" if used.cost_usd is None else says
    return Bar(_shown(group.label), used.tokens, words, used.cost_usd)


def _rest(length: int) -> str:
    return f'<p class="dim">and {length - _MOST_BARS:,} more</p>\n' if length > _MOST_BARS else ""


def _footer(found: Insights) -> str:
    prices = "; ".join(f"{one.label} ({count(one.api_calls, 'call')})" for one in found.prices)
    said = f"<p>Estimated costs are from these prices: {escape(prices)}.</p>\n" if prices else ""
    rule = "Tokens and costs are those of the model calls of these days. A cost that nobody knows is never taken for 0."
    return f"<footer>\n{said}<p>{rule}</p>\n</footer>\n"


def _section(title: str, body: str, kind: str = "") -> str:
    return f'<section class="{kind}">\n<h2>{escape(title)}</h2>\n{body}</section>\n'


def _when(span: Span) -> str:
    return str(span.first) if span.first == span.last else f"{span.first} to {span.last}"


def _ends(spans: Sequence[Span]) -> tuple[str, str]:
    return str(spans[0].first), str(spans[-1].last)


def _shown(name: str) -> str:
    return shorten(one_line(name), _NAME)


def _dollars(amount: float | None) -> str:
    return "unknown" if amount is None else dollars(amount)
