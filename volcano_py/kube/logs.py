"""The log format of all components: time, level, component, text. Volcano: klog."""

from __future__ import annotations

import logging


def configure(component: str, level: int | str = logging.INFO) -> None:
    """Log to standard error from now on."""
    logging.basicConfig(level=level, format=f"%(asctime)s %(levelname)s {component}: %(message)s")
