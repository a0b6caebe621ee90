"""LangGraph's PostgresStore behind a pipe: one line of JSON asks, one answers. Runs in the environment that has LangGraph.

Arguments: DSN, a file of texts (a JSON list), a file of their vectors (float32, one after the other), their dimensions.
The embedding function looks texts up, so no model runs while a call is timed; and the timing is done here, beside it.
"""

from __future__ import annotations

import array
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langgraph.store.base import PutOp
from langgraph.store.postgres import PostgresStore
from psycopg import Connection
from psycopg.rows import dict_row


def main() -> None:
    dsn, texts_file, vectors_file, dimensions = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    texts: list[str] = json.loads(texts_file.read_text("utf-8"))
    at = {text: n for n, text in enumerate(texts)}
    vectors = array.array("f", vectors_file.read_bytes())

    def embed(asked: Any) -> list[list[float]]:
        return [vectors[dimensions * at[text] : dimensions * (at[text] + 1)].tolist() for text in asked]

    # as PostgresStore.from_conn_string() connects
    with Connection.connect(dsn, autocommit=True, prepare_threshold=0, row_factory=dict_row) as conn:
        store = PostgresStore(
            conn,
            index={
                "dims": dimensions,
                "embed": embed,
                "fields": ["text"],
                "distance_type": "cosine",
                "ann_index_config": {"kind": "hnsw", "vector_type": "vector"},
            },
        )
        store.setup()

        def put(tenant: str, folder: str, first: int, last: int) -> dict[str, Any]:
            ops = [PutOp((tenant, folder), str(n), {"text": texts[n]}) for n in range(first, last)]
            start = time.perf_counter()
            store.batch(ops)
            return {"ms": 1000 * (time.perf_counter() - start)}

        def search(tenant: str, query: int, limit: int) -> dict[str, Any]:
            start = time.perf_counter()
            found = store.search((tenant,), query=texts[query], limit=limit)
            return {"ms": 1000 * (time.perf_counter() - start), "found": [int(item.key) for item in found]}

        def tune(settings: dict[str, str]) -> dict[str, Any]:
            for name, value in settings.items():
                conn.execute("select set_config(%s, %s, false)", [name, value])
            return {}

        calls: dict[str, Any] = {"put": put, "search": search, "tune": tune}
        hello = {
            "pid": conn.info.backend_pid,
            "version": f"langgraph-checkpoint-postgres {version('langgraph-checkpoint-postgres')}",
        }
        print(json.dumps(hello), flush=True)
        for line in sys.stdin:
            name, *arguments = json.loads(line)
            print(json.dumps(calls[name](*arguments)), flush=True)


if __name__ == "__main__":
    main()
