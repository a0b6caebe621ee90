from __future__ import annotations

import sys

from graphium_db.cli.main import main

sys.exit(main())
