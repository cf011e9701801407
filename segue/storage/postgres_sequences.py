"""Identity sequences of PostgreSQL, as its catalogue lists them. Copied rows keep their ids and move no sequence."""

from segue.storage.sql import Executor, LaggingSequence

_IDENTITIES = """
    SELECT c.relname, a.attname,
      pg_get_serial_sequence(quote_ident(n.nspname) || '.' || quote_ident(c.relname), a.attname)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relkind = 'r' AND a.attidentity <> '' AND NOT a.attisdropped
    ORDER BY c.relname"""


def lagging_sequences(executor: Executor) -> list[LaggingSequence]:
    """The sequences that are behind the rows of their tables."""
    found = []
    for table, column, name in executor.rows(_IDENTITIES, {}):
        sql = f"SELECT (SELECT max({column}) FROM {table}), last_value + is_called::int FROM {name}"
        highest_id, next_id = executor.rows(sql, {})[0]
        if highest_id is not None and next_id <= highest_id:
            found.append(LaggingSequence(table, next_id, highest_id, name))
    return found


def advance_sequences(executor: Executor) -> None:
    """Put every sequence behind the rows of its table; none goes back, because a sequence is not rolled back."""
    for table, _, highest_id, name in lagging_sequences(executor):
        executor.run(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE", {})  # nobody is given an id meanwhile
        executor.rows(f"SELECT setval('{name}', GREATEST({highest_id}, last_value)) FROM {name}", {})
