"""`python -m volcano_py.scheduler.dispatch FD`: started by the decider, never by hand."""

import sys

from volcano_py.scheduler.dispatch.process import main

if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
