"""The commands for members of graphium_admin: tenants, principals, maintenance."""

from __future__ import annotations

import sys

import click
import psycopg

from graphium_db import calls, errors
from graphium_db.cli.options import Scope, Session, admin_options, examples
from graphium_db.cli.output import counted, done, listed, print_json, say, shown, table
from graphium_db.client import Graphium


@click.group()
def tenant() -> None:
    """Create, drop and list tenants."""


@tenant.command(
    "create",
    epilog=examples(
        "graphium tenant create acme\ngraphium tenant create big --embedding-model bge-m3 --dimensions 1024"
    ),
)
@click.argument("slug")
@click.option("--embedding-model", default="all-MiniLM-L6-v2", show_default=True, help="The one model of its vectors.")
@click.option("--dimensions", default=384, show_default=True, help="How long its vectors are.")
@click.option(
    "--language",
    default="english",
    show_default=True,
    help="How search stems words: a language that PostgreSQL has a stemmer for, or simple.",
)
@admin_options
def tenant_create(
    session: Session, slug: str, embedding_model: str, dimensions: int, language: str, as_json: bool
) -> None:
    """Make an empty tenant and its graph."""
    with session.admin() as memory:
        id = memory.create_tenant(slug, embedding_model, dimensions, language)
    if as_json:
        print_json({"id": id, "slug": slug})
    else:
        done(f"Tenant {shown(slug)} created: {id}")


@tenant.command("drop", epilog=examples("graphium tenant drop acme --yes"))
@click.argument("slug")
@click.option("--yes", is_flag=True, help="Do not ask.")
@admin_options
def tenant_drop(session: Session, slug: str, yes: bool, as_json: bool) -> None:
    """Erase a tenant with all that it remembers."""
    if not yes:
        with Graphium(session.operator_dsn(), tenant=slug) as memory:
            memory.caller()  # there is such a tenant
        try:
            sure = click.confirm(f"Erase tenant {shown(slug)} with all that it remembers?", err=True)
        except click.Abort:
            if sys.stdin.isatty():  # Ctrl-C
                raise
            raise click.UsageError("Nobody is there to answer: --yes drops it without asking.") from None
        if not sure:
            say("Not dropped.")
            raise click.exceptions.Exit(1)
    with session.admin() as memory:
        memory.drop_tenant(slug)
    if as_json:
        print_json({"dropped": slug})
    else:
        done(f"Tenant {shown(slug)} dropped")


@tenant.command("list", epilog=examples("graphium tenant list\ngraphium tenant list --json"))
@admin_options
def tenant_list(session: Session, as_json: bool) -> None:
    """All tenants of the database."""
    with session.admin() as memory:
        tenants = memory.list_tenants()
    if as_json:
        print_json(tenants)
    elif not tenants:
        say("No tenants yet: graphium tenant create …")
    else:
        table(
            "tenant",
            "embedding model",
            "dimensions",
            "language",
            "created",
            rows=(
                [
                    shown(t.slug),
                    shown(t.embedding_model),
                    str(t.dimensions),
                    t.language,
                    t.created_at.strftime("%Y-%m-%d %H:%M"),
                ]
                for t in tenants
            ),
            right=["dimensions"],
        )


@click.group()
def principal() -> None:
    """Bind login roles to a tenant and scopes, list them, and undo it."""


@principal.command(
    "add",
    epilog=examples(
        """
psql … -c "create role analyst login"   # as a superuser, or with CREATEROLE
graphium principal add analyst --tenant acme --scope hr --read-only
"""
    ),
)
@click.argument("role_name", metavar="ROLE")
@click.option("--tenant", required=True, help="The tenant that the role is.")
@click.option("--scope", "scopes", multiple=True, type=Scope(), help="Scope that the role holds at most; repeatable.")
@click.option("--read-only", is_flag=True, help="The role only reads.")
@admin_options
def principal_add(
    session: Session, role_name: str, tenant: str, scopes: tuple[str, ...], read_only: bool, as_json: bool
) -> None:
    """Make a login role a principal: whatever it sets, it is that tenant with at most those scopes."""
    with session.admin() as memory:
        memory.add_principal(role_name, tenant, scopes, read_only)
    if as_json:
        print_json({"role": role_name, "tenant": tenant, "scopes": scopes, "read_only": read_only})
    else:
        held = listed(scopes) or "no scopes"
        done(f"{shown(role_name)} is {shown(tenant)} with {held}{', read-only' if read_only else ''}")


@principal.command("remove", epilog=examples("graphium principal remove analyst"))
@click.argument("role_name", metavar="ROLE")
@admin_options
def principal_remove(session: Session, role_name: str, as_json: bool) -> None:
    """Undo `principal add`. The role itself stays."""
    with session.admin() as memory:
        memory.remove_principal(role_name)
    if as_json:
        print_json({"removed": role_name})
    else:
        done(f"{shown(role_name)} is no principal any more")


@principal.command("list", epilog=examples("graphium principal list\ngraphium principal list --json"))
@admin_options
def principal_list(session: Session, as_json: bool) -> None:
    """All principals of the database, and what each may.

    One that may nothing was bound to a role that is gone, renamed or made anew: add it again if it is still the same
    person, else remove it.
    """
    with session.admin() as memory:
        principals = memory.list_principals()
    if as_json:
        print_json(principals)
    elif not principals:
        say("No principals yet: graphium principal add …")
    else:
        table(
            "role",
            "tenant",
            "scopes",
            "may",
            rows=(
                [
                    shown(p.role_name),
                    shown(p.tenant),
                    listed(p.scopes) or "none",
                    ("read" if p.read_only else "read and write") if p.is_in_force else "nothing: add or remove it",
                ]
                for p in principals
            ),
        )


@click.command(
    short_help="Make and drop vector indexes as tenants grow.",
    epilog=examples(
        "graphium maintain --dry-run\ngraphium maintain\ngraphium maintain --rebuild-graphs --rebuild-memory"
    ),
)
@click.option("--dry-run", is_flag=True, help="Print the statements instead.")
@click.option("--rebuild-graphs", is_flag=True, help="Make the graph of every tenant anew instead: after pg_restore.")
@click.option(
    "--rebuild-memory",
    is_flag=True,
    help="Make counts, summaries, words and copies of every tenant anew instead, where they are wrong.",
)
@admin_options
def maintain(session: Session, dry_run: bool, rebuild_graphs: bool, rebuild_memory: bool, as_json: bool) -> None:
    """Give grown tenants their vector index, take it from shrunken ones, clear away broken builds.

    Runs the statements of graphium.maintenance_plan() one by one. Nothing is blocked meanwhile; a run that is broken
    off is simply run again. The login is a member of graphium_admin that may act as graphium_owner.
    """
    if rebuild_graphs or rebuild_memory:
        if dry_run:
            raise click.UsageError("--dry-run does not go with --rebuild-graphs and --rebuild-memory.")
        _rebuild(session, rebuild_graphs, rebuild_memory, as_json)
        return
    with psycopg.connect(session.operator_dsn(), autocommit=True, application_name="graphium maintain") as connection:
        call = calls.maintenance_plan()
        with errors.translated():
            steps = call.decode(connection.execute(call.sql, call.parameters).fetchall())
        for step in steps if not dry_run else ():
            if step.tenant is not None:
                say(f"{step.action} for tenant {shown(step.tenant)}: {step.reason}")
            connection.execute(step.statement.encode())
    if as_json:
        print_json({"ran": not dry_run, "steps": steps})
    elif dry_run:
        for step in steps:
            done(f"{step.statement};")
    else:
        done(f"{sum(step.tenant is not None for step in steps)} indexes changed" if steps else "Nothing to do.")


def _rebuild(session: Session, graphs: bool, statements: bool, as_json: bool) -> None:
    with session.admin() as memory:
        slugs = [tenant.slug for tenant in memory.list_tenants()]
        mended = {slug: memory.rebuild_memory(slug) for slug in slugs} if statements else {}
        rebuilt = {slug: memory.rebuild_graph(slug) for slug in slugs} if graphs else {}
    if as_json:
        print_json(({"rebuilt": rebuilt} if graphs else {}) | ({"mended": mended} if statements else {}))
        return
    for slug, faults in mended.items():
        done(f"Memory of tenant {shown(slug)} mended: {counted(faults, 'fault')}")
    for slug, size in rebuilt.items():
        done(f"Graph of tenant {shown(slug)} rebuilt: {size} vertices and edges")
