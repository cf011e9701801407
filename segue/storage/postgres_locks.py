"""Watches a transaction for locks of others. The server does not say that a statement waits, so it is asked."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from segue.storage.postgres_address import parsed
from segue.storage.postgres_connection import SETTINGS, PostgresConnection
from segue.storage.waiting import A_WRITER, NOTICE_SECONDS, is_somebody_told, tell_wait

_IS_BLOCKED = "SELECT cardinality(pg_blocking_pids(%s)) > 0"


@contextmanager
def telling_of_locks(url: str, connection: PostgresConnection) -> Iterator[None]:
    """Say once when the connection waits for a lock for a second. Costs nothing when nobody is to be told."""
    if not is_somebody_told():
        yield
        return
    is_over = threading.Event()
    pid = connection.handle.info.backend_pid
    watch = threading.Thread(target=_watch, args=(url, pid, is_over), daemon=True)
    watch.start()
    try:
        yield
    finally:
        is_over.set()


def _watch(url: str, pid: int, is_over: threading.Event) -> None:
    while not is_over.wait(NOTICE_SECONDS):
        try:
            with psycopg.connect(**SETTINGS | parsed(url), autocommit=True) as other:
                row = other.execute(_IS_BLOCKED, (pid,)).fetchone()
        except psycopg.Error:
            continue  # whoever waits is told what is wrong with the server
        if row and row[0] and not is_over.is_set():
            tell_wait(A_WRITER)
            return
