"""The console: pages in which people see what the agents know, who may see it, and mend it.

`create_app(config)` is an ASGI application. It calls the stored functions that everybody calls, through the client and
with the credentials of whoever logged in, and holds no power that he lacks.
"""

from __future__ import annotations

from graphium_db.errors import MissingExtraError

try:
    import itsdangerous as _itsdangerous  # noqa: F401
    import jinja2 as _jinja2  # noqa: F401
    import python_multipart as _multipart  # noqa: F401
    import starlette as _starlette  # noqa: F401
except ImportError:
    raise MissingExtraError("console", "graphium console") from None

from graphium_db.console.app import create_app
from graphium_db.console.config import Allowed, Config

__all__ = ["Allowed", "Config", "create_app"]
