"""The whole deploy as one file for `psql -f`, for DBAs who run nothing that they have not read."""

from __future__ import annotations

from yoyo.migrations import get_migration_hash

from graphium_db.deploy import drift
from graphium_db.deploy.apply import RECORDS
from graphium_db.deploy.tree import Tree, sha256

_HEAD = """\
-- Graphium DB as one file, for an empty database in which a superuser has run db/bootstrap.sql:
--   psql -f graphium.sql "dbname=…"     as a login that may set role to graphium_owner, _keeper and _cypher
-- All or nothing. `graphium migrate` finds nothing to do afterwards, and upgrades from here.
\\set ON_ERROR_STOP on
\\encoding UTF8
begin;
set local search_path = pg_catalog, pg_temp;
set local lock_timeout = '10s';
set local client_min_messages = warning;
set local role graphium_owner;
do $check$
begin
  if to_regclass('graphium_private._yoyo_migration') is not null then
    raise exception 'Graphium is already here: upgrade with graphium migrate';
  end if;
  if (select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace
       where e.extname = 'vector') is distinct from {vector} then
    raise exception 'this file is for a database that has the extension vector in the schema %', {vector}
      using hint = 'Print it again: graphium migrate --sql --dsn …';
  end if;
end
$check$;
"""

# What yoyo 9 (internal schema version 2) makes for itself.
_YOYO = """
create table yoyo_lock (locked int default 1, ctime timestamp, pid int not null, primary key (locked));
create table _yoyo_log (
  id varchar(36), migration_hash varchar(64), migration_id varchar(255), operation varchar(10), username varchar(255),
  hostname varchar(255), comment varchar(255), created_at_utc timestamp, primary key (id));
create table _yoyo_version (version int not null primary key, installed_at_utc timestamp);
insert into _yoyo_version values (1, now() at time zone 'UTC'), (2, now() at time zone 'UTC');
create table _yoyo_migration (
  migration_hash varchar(64), migration_id varchar(255), applied_at_utc timestamp, primary key (migration_hash));
"""

_AS_YOYO = "set local role graphium_owner;\nset local row_security = off;\nset local search_path = graphium_private;\n"
_AS_OWNER = (
    "set local role graphium_owner;\nset local row_security = on;\nset local search_path = pg_catalog, pg_temp;\n"
)


def sql(vector_schema: str = "public", tree: Tree | None = None) -> str:
    """One SQL file with the result of :func:`graphium_db.deploy.deploy` on an empty bootstrapped database.

    `vector_schema` is the quoted identifier of the schema that holds the extension vector; the file checks it.
    """
    tree = tree or Tree.default()
    tree.check_released()
    parts = [_HEAD.format(vector=_literal(vector_schema)), _AS_YOYO, _YOYO]
    for path in tree.migrations():
        name, digest = _literal(path.stem), _literal(get_migration_hash(path.stem))
        parts += [
            f"\n-- ===== migrations/{path.name}\n",
            _AS_YOYO,
            path.read_text("utf-8"),
            "\n",
            _AS_YOYO,
            f"insert into _yoyo_migration values ({digest}, {name}, clock_timestamp() at time zone 'UTC');\n"
            "insert into _yoyo_log (id, migration_hash, migration_id, operation, username, hostname, created_at_utc)\n"
            f"  values (gen_random_uuid(), {digest}, {name}, 'apply', session_user, 'psql',\n"
            "          clock_timestamp() at time zone 'UTC');\n",
        ]
    parts += [_AS_OWNER, RECORDS]
    parts += [_record(f"migrations/{path.name}", sha256(path), ()) for path in tree.migrations()]
    for file in tree.repeatables(vector_schema):
        parts += [
            f"\n-- ===== {file.path}\n",
            file.text,
            "\n",
            _AS_OWNER,
            _record(file.path, file.sha256, file.functions),
        ]
    parts += ["\n-- ===== the catalog as it is left\n", drift.RECORD, "\ncommit;\n"]
    return "".join(parts)


def _record(path: str, digest: str, functions: tuple[str, ...]) -> str:
    names = f"array[{', '.join(map(_literal, functions))}]::text[]" if functions else "'{}'"
    return (
        "insert into graphium_private.deployed_files (path, sha256, functions)\n"
        f"  values ({_literal(path)}, {_literal(digest)}, {names});\n"
    )


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
