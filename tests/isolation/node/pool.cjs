// Many transactions at once over one pool, each as another caller; counts those that saw exactly what is theirs.
// { "connection": …, "callers": [{tenant, scopes, told: [content, …]}], "transactions": n }
"use strict";

const { isDeepStrictEqual } = require("node:util");
const { Pool } = require("pg");

async function one(pool, { tenant, scopes, told }, backends) {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query({
      name: "set_caller",
      text: "select graphium.set_caller(tenant => $1, scopes => $2)",
      values: [tenant, scopes],
    });
    const recalled = await client.query({
      name: "recall",
      text: "select content, pg_backend_pid() as backend from graphium.recall_context(page_size => $1)",
      values: [told.length + 1],
    });
    const read = await client.query({ name: "read", text: "select content from graphium.kg_statements" });
    await client.query("commit");
    for (const row of recalled.rows) backends.add(row.backend);
    return [recalled, read].every((result) => isDeepStrictEqual(result.rows.map((row) => row.content).sort(), told));
  } finally {
    client.release();
  }
}

async function main() {
  let input = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) input += chunk;
  const { connection, callers, transactions } = JSON.parse(input);
  const pool = new Pool({ ...connection, max: 4 });
  const backends = new Set();
  const turns = Array.from({ length: transactions }, (_, i) => one(pool, callers[i % callers.length], backends));
  const right = (await Promise.all(turns)).filter(Boolean).length;
  await pool.end();
  process.stdout.write(JSON.stringify({ right, backends: backends.size }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
