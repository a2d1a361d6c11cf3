"""What every test shares."""

from __future__ import annotations

import os

from hypothesis import settings

# A machine that builds must give the same verdict twice; a developer's gains from new examples.  A deadline in
# milliseconds says more about the machine's load than about the code.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
