"""`volcano-py controller-manager`."""

from __future__ import annotations

import asyncio

import click

from volcano_py.cli.errors import describe_os_error, fail


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def controller_manager(flags: tuple[str, ...]) -> None:
    """Run the controllers: jobs, flows, schedules, PodGroups of plain pods, queues, HyperNodes and more."""
    from volcano_py.controllers.options import Options, parse_flags

    options = parse_flags(flags)  # --help ends here

    from volcano_py.controllers.executor import NotLeading
    from volcano_py.controllers.manager import run
    from volcano_py.controllers.metrics import REQUESTS
    from volcano_py.kube import logs
    from volcano_py.kube.client import Client
    from volcano_py.kube.errors import KubeError
    from volcano_py.kube.supervise import TaskEnded
    from volcano_py.kube.termination import until_terminated

    logs.configure("controller-manager")

    async def work(options: Options) -> None:
        async with Client.for_flags(
            options.kubeconfig or None,
            options.master or None,
            qps=options.kube_api_qps,
            burst=options.kube_api_burst,
            user_agent="volcano-py/controller-manager",
            requests=REQUESTS,
        ) as client:
            await run(client, options)

    try:
        asyncio.run(until_terminated(work(options)))
    except NotLeading:
        fail("leadership was lost; another instance is the leader now")
    except ValueError as e:
        fail(str(e), 2)
    except (KubeError, TaskEnded) as e:
        fail(str(e))
    except OSError as e:
        fail(describe_os_error(e))
    except KeyboardInterrupt:
        raise SystemExit(0) from None
