"""What the pages of one dashboard share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from volcano_py.dashboard.actions import Actions
from volcano_py.dashboard.endpoint import Endpoint
from volcano_py.dashboard.explaining import Explainer
from volcano_py.dashboard.models import Models
from volcano_py.dashboard.shares import Usage
from volcano_py.dashboard.watches import Watches


@dataclass
class Site:
    """The data half, as pages use it. `cluster`: the API server's address."""

    watches: Watches
    models: Models
    actions: Actions
    explainer: Explainer
    endpoint: Endpoint
    usage: Usage
    cluster: str
    now: Callable[[], float] = time.time
