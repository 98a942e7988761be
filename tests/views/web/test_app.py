"""app.py: importing it loads nothing, its flags reach the app, and the server calls nobody."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import gradio as gr
import pytest

import app
from specviz.core.errors import SpecvizError
from specviz.views.web.app import Options, build_app, launch_options

ROOT = Path(__file__).resolve().parents[3]


def python(code, **environ):
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environ},
    )


def test_importing_app_loads_no_torch_no_gradio_and_no_cuda():
    found = python("import sys, app; print([n for n in ('torch', 'gradio', 'transformers') if n in sys.modules])")
    assert found.stdout.strip() == "[]", found.stderr


def test_building_the_app_loads_no_model_and_initialises_no_cuda():
    found = python(
        "import torch\nfrom specviz.views.web.app import build_app\napp = build_app()\n"
        "print(torch.cuda.is_initialized(), app.store.bytes)"
    )
    assert found.stdout.split() == ["False", "0"], found.stderr


def test_telemetry_is_off_before_gradio_is_imported(monkeypatch):
    seen = {}

    class Stop(Exception):
        pass

    def build(options):
        seen.update({name: os.environ.get(name) for name in app.QUIET}, options=options)
        raise Stop

    for name in app.QUIET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("specviz.views.web.app.build_app", build)
    with pytest.raises(Stop):
        app.main(["--target", "path:/x", "--device", "cpu", "--dtype", "float32", "--memory-gb", "3"])
    assert seen["GRADIO_ANALYTICS_ENABLED"] == "False" and seen["HF_HUB_DISABLE_TELEMETRY"] == "1"
    assert seen["options"] == Options("path:/x", "cpu", "float32", None, 3.0)


@pytest.mark.parametrize(
    "flags",
    [
        ["--target", "SmolLM2"],
        ["--profile", "moon"],
        *(["--memory-gb", told] for told in ("inf", "nan", "1e300", "-1", "0")),
    ],
)
def test_a_wrong_flag_is_a_sentence_and_status_2(flags, capsys):
    assert app.main(flags) == 2
    assert capsys.readouterr().err.strip().endswith(".")


def test_a_port_that_is_taken_is_a_sentence_and_status_2(capsys, monkeypatch):
    monkeypatch.setattr("specviz.views.web.app.App.begin_loading", lambda self: None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert app.main(["--port", str(taken.getsockname()[1])]) == 2
    assert "--port" in capsys.readouterr().err


def test_the_launch_arguments_keep_visitors_private_and_files_in():
    options = launch_options()
    assert options["ssr_mode"] is options["run_history"] is options["enable_monitoring"] is options["share"] is False
    assert options["strict_cors"] is True and options["max_file_size"] == "1mb"
    assert "allowed_paths" not in options


def test_the_theme_fetches_no_font():
    theme = launch_options()["theme"]
    assert not any(isinstance(font, gr.themes.GoogleFont) for font in (*theme._font, *theme._font_mono))


def test_only_the_two_endpoints_are_public():
    info = build_app(Options(device="cpu")).blocks.get_api_info()
    assert set(info["named_endpoints"]) == {"/race", "/summary"}
    assert not info["unnamed_endpoints"]


def test_two_apps_share_nothing():
    first, second = (build_app(Options(device="cpu")) for _ in range(2))
    assert first.store is not second.store
    with pytest.raises(SpecvizError):
        build_app(Options(profile="moon"))
