// Runs the scenario that comes on stdin with node-postgres, and prints what came of each step.
// { "logins": {name: connection}, "callers": {name: {login, tenant?, scopes?}}, "steps": [{as, call, with, columns?, keep?}, …] }
"use strict";

const { createHash } = require("node:crypto");
const { Pool, types } = require("pg");
const { INT8, TIMESTAMPTZ } = types.builtins;
const VOID = 2278;

// Which arguments are JSON. node-postgres writes an object as JSON, but an array as a PostgreSQL array.
const JSON_ARGUMENTS = new Set(["statements", "params", "source", "target"]);
const TIME_ARGUMENTS = new Set(["since", "until"]);

function parameter(name, value, kept) {
  if (typeof value === "string" && value.startsWith("$")) return kept.get(value);
  if (name === "statement_ids" || name === "ids") return value.map((id) => kept.get(id) ?? id); // uuid[] from an array
  if (JSON_ARGUMENTS.has(name)) return JSON.stringify(value);
  if (TIME_ARGUMENTS.has(name)) return new Date(value);
  return value; // text, numbers, booleans, text[] from an array of texts
}

// A plain JSON value of what node-postgres made of a column.
function plain(value, type) {
  if (value === null || type === VOID) return null;
  if (type === INT8) {
    if (typeof value !== "string") throw new Error("bigint comes as text, so that no digit is lost");
    return Number(value);
  }
  if (type === TIMESTAMPTZ) {
    if (!(value instanceof Date)) throw new Error("timestamptz comes as a Date");
    return value.toISOString();
  }
  return value;
}

async function run(pool, caller, step, kept) {
  const names = Object.keys(step.with ?? {});
  const argumentsText = names.map((name, i) => `${name} => $${i + 1}`).join(", ");
  const client = await pool.connect();
  try {
    await client.query("begin");
    if (caller.tenant !== undefined) {
      await client.query({
        name: "set_caller",
        text: "select graphium.set_caller(tenant => $1, scopes => $2)",
        values: [caller.tenant, caller.scopes],
      });
    }
    const text = step.columns
      ? `select ${step.columns.join(", ")} from graphium.${step.call}(${argumentsText})`
      : `select graphium.${step.call}(${argumentsText}) as value`;
    const result = await client.query({
      name: createHash("sha256").update(text).digest("hex").slice(0, 40), // prepared once for each connection
      text,
      values: names.map((name) => parameter(name, step.with[name], kept)),
      rowMode: "array",
    });
    await client.query("commit");
    for (const [column, ids] of Object.entries(step.keep ?? {})) {
      const place = step.columns ? step.columns.indexOf(column) : 0;
      ids.forEach((id, i) => kept.set(`$${id}`, result.rows[i][place]));
    }
    const rows = result.rows.map((row) => row.map((value, i) => plain(value, result.fields[i].dataTypeID)));
    return { gives: step.columns ? rows : rows.map((row) => row[0]) };
  } catch (error) {
    if (error.code === undefined) throw error;
    await client.query("rollback");
    return { fails: [error.code, error.message] };
  } finally {
    client.release();
  }
}

async function main() {
  let input = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) input += chunk;
  const { logins, callers, steps } = JSON.parse(input);
  const pools = Object.fromEntries(Object.entries(logins).map(([name, options]) => [name, new Pool({ ...options, max: 2 })]));
  const kept = new Map();
  const transcript = [];
  for (const step of steps) {
    const caller = callers[step.as];
    transcript.push(await run(pools[caller.login], caller, step, kept));
  }
  for (const pool of Object.values(pools)) await pool.end();
  process.stdout.write(JSON.stringify(transcript));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
