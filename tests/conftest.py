"""How hypothesis draws its examples.

By default the same ones in every run, so that a change is judged by what it changed. `HYPOTHESIS_PROFILE=explore` draws
new ones (`make explore`); what that finds is replayed for ever by an `@example` or a file beside its test.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("steady", derandomize=True, database=None, print_blob=True)
settings.register_profile("explore", print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
