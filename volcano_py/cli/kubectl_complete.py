"""`kubectl_complete-volcano`: the completion of `kubectl volcano`, in the protocol of kubectl's plugins.

kubectl calls the program with the words of the command line, the last of them incomplete, and expects one candidate in
each line, then a directive.
"""

from __future__ import annotations

import sys

from click.shell_completion import ShellComplete

from volcano_py.cli.vcctl import main as vcctl

NO_FILES, FILES = 4, 0
"""Directives of cobra: whether the shell also completes the names of files."""


def main() -> None:
    """Print the candidates for the arguments."""
    *words, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(vcctl, {}, "vcctl", "_VCCTL_COMPLETE").get_completions(words, incomplete)
    for item in found:
        if item.type == "plain":
            print(f"{item.value}\t{item.help}" if item.help else item.value)
    print(f":{FILES if any(item.type in ('file', 'dir') for item in found) else NO_FILES}")


if __name__ == "__main__":
    main()
