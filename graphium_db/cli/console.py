"""`graphium console`: the web pages, served on this machine."""

from __future__ import annotations

import contextlib
import gc
import socket
from pathlib import Path

import click

from graphium_db import server
from graphium_db.cli.options import Session, caller_options, examples
from graphium_db.cli.output import done, print_json, say
from graphium_db.client import Graphium
from graphium_db.errors import BadArgumentError, MissingExtraError

CONNECTIONS = 500  # more than these are answered 503


@click.command(
    short_help="Look at the memory, and mend it, in a browser.",
    epilog=examples(
        """
graphium console --tenant acme --scope hr --scope legal
graphium console --allow tenants.toml --port 8400
graphium console --dsn "host=db.example.com dbname=memory"  # principals
"""
    ),
)
@click.option("--port", default=8321, show_default=True, type=click.IntRange(1, 65535), help="Where it listens.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Another address than this machine's own.")
@click.option("--name", "names", multiple=True, help="A name by which a proxy reaches it; repeatable.")
@click.option(
    "--allow",
    type=click.Path(dir_okay=False, path_type=Path),
    help="TOML file of the tenants and scopes that may be chosen: [[allow]] tenant = …, scopes = […].",
)
@caller_options
def console(session: Session, port: int, host: str, names: tuple[str, ...], allow: Path | None, as_json: bool) -> None:
    """Serve the Context page: what the agents know, who may see it, and mend it.

    Whoever logs in as a principal, by name and password, has that login's rights. With --tenant (and --scope), or
    --allow, this console's own login may speak for those tenants: people choose scopes among them, and show the access
    key that is printed here. The database is asked as everybody asks it, and refuses what they may not.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("console", "graphium console") from None
    from graphium_db.console import Allowed, Config, create_app
    from graphium_db.console.config import LOOPBACK, read_allowed

    allowed = read_allowed(allow) if allow else ()
    if session.tenant is not None:
        allowed = (Allowed(session.tenant, session.scopes or ()), *allowed)
    listener = _listen(host, port)
    config = Config(dsn=session.dsn or server.default_dsn(), allowed=allowed, host=host, port=port, names=names)
    for each in allowed:
        with Graphium(config.dsn, tenant=each.tenant, scopes=each.scopes) as memory:
            memory.caller()  # a tenant that is none is told now
    app = create_app(config)
    address = f"[{host}]" if ":" in host else host
    url = f"http://{address}:{port}/"
    if host not in LOOPBACK:
        say(f"Warning: {host} is no loopback address, and passwords go over the network as they are typed.", "bold red")
        say("Put a proxy with TLS in front, and --name what it is called by.")
    if as_json:
        print_json({"url": url, "access_key": config.access_key if allowed else None})
    else:
        say("Ctrl-C ends it, and with it all that are logged in. Open:")
        done(f"{url}login?key={config.access_key}" if allowed else url)
    settings = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=5,
    )
    with listener, contextlib.suppress(KeyboardInterrupt):
        gc.freeze()  # what is there now stays: looking through it again took 20 ms and more in the middle of a page
        uvicorn.Server(settings).run([listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise BadArgumentError(
            f"port: {host}:{port} is not to be had: {error.strerror or error}",
            "Another console may be there; choose a free one: --port 8322.",
        ) from None
