"""`python -m volcano_py.scheduler.dispatch FD`: started by the decider only. Volcano has one process."""

import asyncio
import logging
import socket
import sys

from volcano_py.kube import KubeError, logs
from volcano_py.scheduler.dispatch.process import Process

log = logging.getLogger("volcano_py.scheduler.dispatch")


def main(descriptor: int) -> int:
    """Serve the decider at the other end of the inherited socket `descriptor`.

    The exit code: 0 after Stop, 1 after an unexpected error, 2 without credentials, 3 without heartbeat.
    """
    logs.configure("dispatcher")

    async def serve() -> int:
        return await Process(socket.socket(fileno=descriptor)).run()

    try:
        return asyncio.run(serve())
    except KubeError as error:
        log.error("%s", error)
        return 2
    except Exception:
        log.exception("the dispatcher exits after an unexpected error")
        return 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
