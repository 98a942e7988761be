"""The command line: `python -m specviz COMMAND`, one file a command in `specviz.views.terminal.commands`.

A wrong input is a sentence on stderr and exit status 2, Ctrl-C is status 130, a lane that failed is status 1; never a
traceback. Results go to stdout; progress and notes go to stderr.

Import levels; a module imports only from its right (a test enforces it):

    commands > show > printed_report, screen > interrupt, lane_text > arguments, escaping, race_progress, recorder
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from specviz import __version__
from specviz.core.errors import SpecvizError
from specviz.views.terminal.arguments import Parser
from specviz.views.terminal.commands import commands
from specviz.views.terminal.escaping import one_line

FAILED, REFUSED, INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit status."""
    try:
        arguments = _parser().parse_args(argv)
        return arguments.run(arguments)
    except SpecvizError as error:
        print(one_line(str(error)), file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has had enough, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:  # a full disk behind the output, say
        print(f"The output cannot be written: {error.strerror or error}.", file=sys.stderr)
        return REFUSED


def _parser() -> Parser:
    parser = Parser(prog="python -m specviz", description="Speculative decoding beside standard decoding.")
    parser.add_argument("--version", action="version", version=f"specviz {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, command in commands().items():
        first_line = command.__doc__.splitlines()[0]
        subparser = subparsers.add_parser(name, help=first_line, description=command.__doc__)
        command.configure(subparser)
        subparser.set_defaults(run=command.run)
    return parser
