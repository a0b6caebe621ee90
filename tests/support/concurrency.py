"""Two sessions at once, without sleeping for luck: hold a known lock, watch until the other waits on it, go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg

Connection = psycopg.Connection[Any]
T = TypeVar("T")


def wait_until(condition: Callable[[], bool], what: str, timeout: float = 20) -> None:
    """Ask `condition` again and again; fail, naming `what`, after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s in vain until {what}")
        time.sleep(0.002)


def wait_until_blocked(observer: Connection, waiter: Connection, by: Connection | None = None) -> None:
    """Return once `waiter` waits for a lock (held by `by`, when given). `observer` is a third, idle connection."""

    def blocked() -> bool:
        row = observer.execute("select pg_blocking_pids(%s)", [waiter.info.backend_pid]).fetchone()
        assert row is not None
        return bool(row[0]) if by is None else by.info.backend_pid in row[0]

    wait_until(blocked, f"backend {waiter.info.backend_pid} waits for a lock")


def wait_until_it_blocks(observer: Connection, holder: Connection) -> None:
    """Return once somebody, whoever it is, waits for a lock that `holder` has."""
    waits = "select exists (select from pg_stat_activity a where %s = any (pg_blocking_pids(a.pid)))"

    def blocks() -> bool:
        row = observer.execute(waits, [holder.info.backend_pid]).fetchone()
        return row == (True,)

    wait_until(blocks, f"somebody waits for backend {holder.info.backend_pid}")


@contextmanager
def in_thread(work: Callable[[], T]) -> Iterator[Future[T]]:
    """Run `work` in a thread; its result, or what it raised, is in the future."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(work)


def all_at_once(works: list[Callable[[], T]]) -> list[T]:
    """Run every piece of work in a thread of its own, started together; results in order, the first error raised."""
    with ThreadPoolExecutor(len(works)) as pool:
        futures = [pool.submit(work) for work in works]
    return [future.result() for future in futures]
