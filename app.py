"""specviz in the browser: `python app.py`, then open the address that it prints.

Flags, the environment, and the launch; the page itself is specviz.views.web. Importing this file loads nothing.
"""

from __future__ import annotations

import argparse
import os
import sys

# Read when gradio and the hub's client are imported, so they are set before.
QUIET = {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1"}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="app.py", description="Watch speculative decoding live, in the browser.")
    parser.add_argument("--host", default=None, help="address to listen on (default 127.0.0.1; 0.0.0.0 for all)")
    parser.add_argument("--port", type=int, default=None, help="port (default: the first free one from 7860)")
    parser.add_argument("--target", default=None, metavar="SOURCE", help="target to begin with: embedded, hub:ID, ...")
    parser.add_argument("--device", default="auto", help="auto, cuda, mps or cpu")
    parser.add_argument("--dtype", default=None, help="auto, float32, bfloat16 or float16 (default: the profile's)")
    parser.add_argument("--profile", default=None, help="hardware profile of spaces.yaml (default: found by itself)")
    parser.add_argument("--memory-gb", type=float, default=None, help="memory that loaded weights may take together")
    parser.add_argument("--root-path", default=None, help="path under which a proxy serves the app")
    parser.add_argument("--open", action="store_true", help="open a browser tab")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    arguments = parse(argv)
    os.environ.update(QUIET)
    if os.environ.get("SPACES_ZERO_GPU"):
        import spaces  # noqa: F401, must be imported before torch

    from specviz.core.errors import SpecvizError
    from specviz.views.web.app import Options, build_app, launch_options

    try:
        app = build_app(
            Options(arguments.target, arguments.device, arguments.dtype, arguments.profile, arguments.memory_gb)
        )
    except SpecvizError as error:
        print(error, file=sys.stderr)
        return 2
    app.begin_loading()
    place = {"server_name": arguments.host, "server_port": arguments.port, "root_path": arguments.root_path}
    try:
        app.blocks.launch(**place, inbrowser=arguments.open, **launch_options())
    except OSError as error:  # the port is taken, or not ours to take
        print(f"{error} Choose another with --port.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
