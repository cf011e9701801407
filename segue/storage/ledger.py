"""What models have used, call by call."""

from collections.abc import Iterator

from segue.core.insights import Group, PriceTable, Slot, Spending
from segue.core.moments import SLOT
from segue.core.scope import Scope
from segue.core.usage import Spent
from segue.ports.store import Entries, Ledger
from segue.storage.sql import Condition, Executor, columns, placeholders, visible

_SPENT = columns(Spent._fields)
_TOKENS = "u.input_tokens + u.output_tokens"
_COST = "COALESCE(u.actual_cost_usd, u.estimated_cost_usd)"
_WITHOUT_COST = f"sum(CASE WHEN {_COST} IS NULL THEN {{}} ELSE 0 END)"
_SUMS = {
    "api_calls": "sum(u.api_call_count)",
    "input_tokens": "sum(u.input_tokens)",
    "output_tokens": "sum(u.output_tokens)",
    "cache_read_tokens": "sum(u.cache_read_tokens)",
    "cache_write_tokens": "sum(u.cache_write_tokens)",
    "reasoning_tokens": "sum(u.reasoning_tokens)",
    "estimated_cost_usd": "sum(u.estimated_cost_usd)",
    "actual_cost_usd": "sum(u.actual_cost_usd)",
    "cost_usd": f"sum({_COST})",
    "calls_without_cost": _WITHOUT_COST.format("u.api_call_count"),
    "tokens_without_cost": _WITHOUT_COST.format(_TOKENS),
}
assert tuple(_SUMS) == Spending._fields
_FROM = "FROM usage u JOIN sessions s ON s.id = u.session_id"
_COLUMNS = {"model": "u.model", "source": "s.source", "purpose": "u.purpose"}


class SqlLedger(Ledger):
    def __init__(self, executor: Executor, scope: Scope) -> None:
        self._db = executor
        self._scope = scope

    def add(self, *entries: Spent) -> None:
        sql = f"INSERT INTO usage ({_SPENT}) VALUES ({placeholders(Spent._fields)})"
        self._db.run_many(sql, [entry._asdict() for entry in entries])

    def settle(self, session_id: str) -> None:
        where = visible(self._scope)
        where.add("id = :session_id", session_id=session_id)
        sql = f"""
            UPDATE usage SET actual_cost_usd = 0.0 WHERE actual_cost_usd IS NULL
            AND session_id IN (SELECT id FROM sessions WHERE {where.sql})"""
        self._db.run(sql, where.parameters)

    def of(self, session_id: str) -> list[Spent]:
        where = self._matching(Entries(session_ids=(session_id,)))
        sql = f"SELECT {columns(Spent._fields, 'u')} {_FROM} WHERE {where.sql} ORDER BY u.id"
        return [Spent._make(row) for row in self._db.rows(sql, where.parameters)]

    def total(self, wanted: Entries) -> Spending:
        where = self._matching(wanted)
        sql = f"SELECT count(*), {', '.join(_SUMS.values())} {_FROM} WHERE {where.sql}"
        entries, *sums = self._db.rows(sql, where.parameters)[0]
        return Spending._make(sums) if entries else Spending()

    def spending_by(self, column: str, wanted: Entries) -> list[Group]:
        where, name = self._matching(wanted), _COLUMNS[column]
        sql = f"""
            SELECT {name}, {", ".join(_SUMS.values())} {_FROM} WHERE {where.sql}
            GROUP BY {name} ORDER BY sum({_TOKENS}) DESC, {name}"""
        rows = self._db.rows(sql, where.parameters)
        return [Group(row[0], spending=Spending._make(row[1:])) for row in rows]

    def per_slot(self, wanted: Entries) -> Iterator[Slot]:
        where = self._matching(wanted)
        sql = f"""
            SELECT CAST(floor(u.at / {SLOT}) AS INTEGER), sum({_TOKENS}), sum({_COST}), {_WITHOUT_COST.format(_TOKENS)}
            {_FROM} WHERE {where.sql} GROUP BY 1 ORDER BY 1"""
        return map(Slot._make, self._db.stream(sql, where.parameters))

    def prices(self, wanted: Entries) -> list[PriceTable]:
        where = self._matching(wanted)
        where.add("u.estimated_cost_usd IS NOT NULL AND u.actual_cost_usd IS NULL")
        sql = f"""
            SELECT u.cost_source, u.pricing_version, sum(u.api_call_count) {_FROM} WHERE {where.sql}
            GROUP BY u.cost_source, u.pricing_version ORDER BY sum(u.api_call_count) DESC, 1, 2"""
        return [PriceTable._make(row) for row in self._db.rows(sql, where.parameters)]

    def _matching(self, wanted: Entries) -> Condition:
        where = visible(self._scope, "s")
        if wanted.since is not None:
            where.add("u.at >= :since", since=wanted.since)
        if wanted.sources:
            where.add_membership("s.source", wanted.sources)
        if wanted.session_ids is not None:
            where.add_membership("u.session_id", wanted.session_ids)
        return where
