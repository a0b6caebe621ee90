"""What was changed by hand since the last deploy: functions, triggers, policies, row-level security and rights in our
schemas.

A deploy leaves one line per object in `graphium_private.deployed_catalog`; the next one compares. What changes rightly
between deploys is not among them: the schema of each tenant's graph, indexes, role memberships, and what other roles
than ours were granted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from graphium_db.deploy.snapshot import _FUNCTIONS, _OURS, _POLICIES
from graphium_db.deploy.tree import DeployError
from graphium_db.deploy.verify import OWNERS

Connection = psycopg.Connection[Any]

_CATALOG = f"""
select 'function ' || split_part(split_part(line, E'\\n', 1), ' -> ', 1) as object, md5(line) as state, null as owner
  from ({_FUNCTIONS}) as f(line)
union all
select 'policy ' || split_part(line, E'\\n', 1), md5(line), null from ({_POLICIES}) as p(line)
union all
select 'trigger ' || quote_ident(g.tgname) || ' on ' || c.oid::regclass,
       md5(pg_get_triggerdef(g.oid) || g.tgenabled::text), pg_get_userbyid(c.relowner)
  from pg_trigger g join pg_class c on c.oid = g.tgrelid where c.relnamespace in {_OURS} and not g.tgisinternal
union all
select 'row security of ' || c.oid::regclass, case when c.relrowsecurity then 'enabled' else 'disabled' end
         || case when c.relforcerowsecurity then ', forced' else ', not forced' end, pg_get_userbyid(c.relowner)
  from pg_class c where c.relnamespace in {_OURS} and c.relkind in ('r', 'p')
union all
select format('grant %s on %s to %s', case when a.part is null then lower(x.privilege_type)
                                           else format('%s (%s)', lower(x.privilege_type), a.part) end,
              a.object, case x.grantee when 0 then 'public' else pg_get_userbyid(x.grantee) end),
       case when bool_or(x.is_grantable) then 'with grant option' else 'plain' end, pg_get_userbyid(a.owner)
  from (
    select 'schema ' || n.oid::regnamespace, null, n.nspowner, coalesce(n.nspacl, acldefault('n', n.nspowner))
      from pg_namespace n where n.oid in {_OURS}
    union all
    select case c.relkind when 'S' then 'sequence ' else 'table ' end || c.oid::regclass, null, c.relowner,
           coalesce(c.relacl, acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner))
      from pg_class c where c.relnamespace in {_OURS} and c.relkind in ('r', 'p', 'v', 'm', 'S')
    union all
    select 'table ' || c.oid::regclass, quote_ident(t.attname), c.relowner, t.attacl
      from pg_attribute t join pg_class c on c.oid = t.attrelid
     where c.relnamespace in {_OURS} and t.attacl is not null and not t.attisdropped
    union all
    select 'routine ' || p.oid::regprocedure, null, p.proowner, coalesce(p.proacl, acldefault('f', p.proowner))
      from pg_proc p where p.pronamespace in {_OURS}
  ) as a(object, part, owner, acl), aclexplode(a.acl) as x
 where x.grantee <> a.owner
   and (x.grantee = 0 or pg_get_userbyid(x.grantee) in ('graphium_owner', 'graphium_keeper', 'graphium_cypher',
                                                        'graphium_reader', 'graphium_user', 'graphium_app',
                                                        'graphium_admin'))
 group by a.object, a.part, a.owner, x.privilege_type, x.grantee
"""

# For a transaction as graphium_owner. With an empty search_path every name comes out qualified.
RECORD = f"""
create table if not exists graphium_private.deployed_catalog (object text primary key, state text not null);
comment on table graphium_private.deployed_catalog is
  'As the last deploy left them: functions, triggers, policies, row-level security and rights in our schemas.';
set local search_path = '';
delete from graphium_private.deployed_catalog;
insert into graphium_private.deployed_catalog (object, state) select object, state from ({_CATALOG}) as c;
set local search_path = pg_catalog, pg_temp;
"""


@dataclass(frozen=True)
class Difference:
    """An object that is not as it was left. `was` is None for one that was added, `now` for one that is gone."""

    object: str
    was: str | None
    now: str | None
    owner: str

    def __str__(self) -> str:
        return f"{self.object} ({'added' if self.was is None else 'gone' if self.now is None else 'changed'})"

    @property
    def remedy(self) -> str | None:
        """The statement that puts it back; None for what the repeatable files put back."""
        if self.object.startswith("row security of ") and self.was and self.now:
            enable = "enable" if self.was.startswith("enabled") else "disable"
            force = "no force" if self.was.endswith("not forced") else "force"
            table = self.object.removeprefix("row security of ")
            return f"alter table {table} {enable} row level security, {force} row level security"
        if self.object.startswith(("policy ", "trigger ")) and self.was is None:
            return f"drop {self.object}"
        if self.object.startswith("grant "):
            what, _, role = self.object.removeprefix("grant ").rpartition(" to ")
            if self.now is None:
                return None if " on routine " in what else self.object
            return f"revoke {'' if self.was is None else 'grant option for '}{what} from {role}"
        return None


def known(conn: Connection) -> bool:
    """Whether a deploy recorded the catalog, and no migration ran since by other means."""
    if _missing(conn, "deployed_catalog") or _missing(conn, "_yoyo_migration"):
        return False
    row = conn.execute(
        "select exists (select from graphium_private.deployed_catalog) and not exists ("
        " select from (select 'migrations/' || migration_id || '.sql' as path from graphium_private._yoyo_migration) m"
        " full join (select path from graphium_private.deployed_files where path ^@ 'migrations/') f using (path)"
        " where m.path is null or f.path is null)"
    ).fetchone()
    return row == (True,)


def differences(conn: Connection) -> tuple[Difference, ...]:
    """What is not as the last deploy left it; nothing when that is not known. In a transaction as graphium_owner."""
    if not known(conn):
        return ()
    conn.execute("set local search_path = ''")
    rows = conn.execute(
        f"select object, r.state, c.state, coalesce(c.owner, 'graphium_owner') from ({_CATALOG}) as c"
        " full join graphium_private.deployed_catalog r using (object)"
        " where r.state is distinct from c.state"
        # An earlier version recorded none.
        "   and (not object ^@ 'trigger '"
        "        or exists (select from graphium_private.deployed_catalog t where t.object ^@ 'trigger '))"
        ' order by object collate "C"'.encode()
    ).fetchall()
    conn.execute("set local search_path = pg_catalog, pg_temp")
    return tuple(Difference(*row) for row in rows)


def put_back(conn: Connection, found: tuple[Difference, ...]) -> None:
    """Undo what no repeatable file would undo: flags, rights, policies too many. Raises when it is not allowed to."""
    # What a stranger owns is for the verification to refuse.
    mended = [d for d in found if d.remedy and d.owner in OWNERS]
    for difference in mended:
        try:
            conn.execute("select set_config('role', %s, true)", [difference.owner])
            conn.execute((difference.remedy or "").encode())
        except psycopg.Error as error:
            raise _by_superuser([difference]) from error
    conn.execute("set local role graphium_owner")
    if mended:
        now = differences(conn)
        left = [d for d in now if d in mended]
        if left:
            raise _by_superuser(left)
        # Taking back a right to a table takes those to its columns along.
        put_back(conn, tuple(d for d in now if d not in found))


def refuse_added(found: tuple[Difference, ...], expected: set[str]) -> None:
    """Raise for functions that were added by hand: `expected` are the names of those that the tree makes."""
    added = [d.object for d in found if d.was is None and d.object.startswith("function ")]
    strange = [text for text in added if text.removeprefix("function ").partition("(")[0] not in expected]
    if strange:
        raise DeployError(
            "functions were added by hand to our schemas; drop them, or move them to a schema of yours:\n  "
            + "\n  ".join(f"drop {text};" for text in strange)
        )


def record(conn: Connection) -> None:
    """Remember the catalog as it is. In a transaction as graphium_owner."""
    conn.execute(RECORD.encode())


def _by_superuser(left: list[Difference]) -> DeployError:
    lines = "".join(f"\n  {d}: {d.remedy};" for d in left)
    return DeployError(f"changed by hand since the last migrate; a superuser puts it back:{lines}")


def _missing(conn: Connection, table: str) -> bool:
    return conn.execute("select to_regclass(%s) is null", [f"graphium_private.{table}"]).fetchone() == (True,)
