"""`python -m specviz`: the command line, on a terminal that may not speak UTF-8."""

import sys

from specviz.views.terminal import main

if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    raise SystemExit(main())
