"""Import levels: what the package's docstring declares is what the code does, and light modules stay light."""

import ast
import re
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import specviz

ROOT = Path(specviz.__file__).resolve().parent
HEAVY = ("torch", "transformers", "gradio")
# folders of files that are found by themselves
PLUGINS = ("drafts", "experiments/bench_parts", "views/terminal/commands")


def levels(docstring):
    """{module: modules it may import}, from the indented lines of a package's docstring and their joint closure.

    A line that ends with "," or ">" goes on in the next one.
    """
    right = {}
    indented = "\n".join(re.findall(r"^ {4}(\S.*)$", docstring, re.MULTILINE))
    lines = re.sub(r"([,>])\n", r"\1 ", indented).splitlines()
    for chain in (chain for line in lines if ">" in line for chain in line.split(";")):
        groups = [[name.strip() for name in group.split(",")] for group in chain.split(">")]
        for index, group in enumerate(groups):
            for name in group:
                right.setdefault(name, set()).update(*groups[index + 1 :])
    changed = True
    while changed:
        changed = False
        for below in right.values():
            more = set().union(*(right[name] for name in below)) - below if below else set()
            below |= more
            changed = changed or bool(more)
    return right


def files():
    yield from ((path, path.relative_to(ROOT).parts[0].removesuffix(".py")) for path in sorted(ROOT.rglob("*.py")))


def imports(path):
    """Dotted names that a file imports, those inside functions and for type checking too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part_of(name):
    """The part of specviz that a dotted name belongs to: a public name to its home, the version and others to none."""
    pieces = name.split(".")
    if pieces[0] != "specviz" or len(pieces) < 2 or pieces[1] == "__version__":
        return None
    if (ROOT / pieces[1]).is_dir() or (ROOT / f"{pieces[1]}.py").is_file():
        return pieces[1]
    return getattr(specviz, pieces[1]).__module__.split(".")[1]


PARTS = sorted({part for _, part in files()} - {"__init__", "__main__"})


@pytest.mark.parametrize("part", PARTS)
def test_a_module_imports_only_from_its_right(part):
    allowed = levels(specviz.__doc__)
    assert part in allowed, f"{part} has no level in the docstring of specviz"
    for path, owner in files():
        if owner == part:
            for name in imports(path):
                other = part_of(name)
                if other not in (None, part):
                    assert other in allowed[part], f"{path.relative_to(ROOT)} imports {other}"


def test_the_levels_have_no_circle():
    assert not [name for name, below in levels(specviz.__doc__).items() if name in below]


def test_every_level_is_of_a_module_that_is_there():
    assert set(levels(specviz.__doc__)) <= {"app", *PARTS}


def docstring(package):
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")), clean=False) or ""


def members(package):
    """{name: files} of a package's modules and packages."""
    found = {path.stem: [path] for path in package.glob("*.py") if path.stem != "__init__"}
    return found | {path.parent.name: list(path.parent.rglob("*.py")) for path in package.glob("*/__init__.py")}


# of the others no file imports a sibling, but for a strategy or a part that builds on another
LEVELLED = [path.parent for path in sorted(ROOT.rglob("*/__init__.py")) if "Import levels" in docstring(path.parent)]


@pytest.mark.parametrize("package", LEVELLED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_imports_only_from_its_right_inside_its_package_too(package):
    allowed, found = levels(docstring(package)), members(package)
    assert set(allowed) == set(found)
    assert not [name for name, below in allowed.items() if name in below]
    dotted = module_of(package / "__init__.py") + "."
    for name, paths in found.items():
        imported = {
            one.removeprefix(dotted).split(".")[0] for path in paths for one in imports(path) if one.startswith(dotted)
        }
        assert (imported & set(found)) - {name} <= allowed[name], name


def test_every_package_whose_files_build_on_each_other_declares_its_levels():
    for package in {path.parent for path in ROOT.rglob("*/__init__.py")} - set(LEVELLED):
        assert len(members(package)) < 3 or package.relative_to(ROOT).as_posix() in PLUGINS


@pytest.mark.parametrize("part", ["traces", "metrics", "views/plots", "core/settings.py", "core/errors.py"])
def test_light_parts_never_name_a_heavy_package(part):
    paths = [path for path, _ in files() if path.is_relative_to(ROOT / part)]
    assert paths
    for path in paths:
        assert not [name for name in imports(path) if name.split(".")[0] in HEAVY], path


def test_gradio_is_imported_by_the_page_alone():
    for path, _ in files():
        if not path.is_relative_to(ROOT / "views" / "web"):
            assert not [name for name in imports(path) if name.split(".")[0] == "gradio"], path


def module_of(path):
    """The dotted name of a file: a package's for its `__init__`."""
    return ".".join(["specviz", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


def file_graph():
    """{module: modules of this project that it imports}, imports inside functions and for type checking included."""
    modules = {module_of(path): path for path, _ in files()}
    graph = {}
    for module, path in modules.items():
        found = ((name if name in modules else name.rpartition(".")[0]) for name in imports(path))
        graph[module] = {name for name in found if name in modules and name not in (module, "specviz")}
    return graph


def test_no_files_import_each_other_in_a_circle():
    TopologicalSorter(file_graph()).prepare()  # raises CycleError, which names the circle


def test_no_two_modules_share_a_name():
    names = Counter(path.stem for path, _ in files() if not path.stem.startswith("__"))
    assert not [name for name, count in names.items() if count > 1]


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        ("specviz", HEAVY),
        ("specviz.traces, specviz.metrics", HEAVY),
        ("specviz.views.plots", HEAVY),
        ("specviz.core.settings, specviz.core.errors", HEAVY),
        ("specviz.decoding.engine, specviz.races.racing, specviz.drafts, specviz.models", ("gradio",)),
    ],
)
def test_a_fresh_interpreter_loads_no_more_than_it_needs(modules, absent):
    code = f"import {modules}, sys; print(*(name for name in {absent!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT.parent, check=True)
    assert done.stdout.split() == []


def test_every_public_name_is_there_and_no_module_bears_it():
    for name in specviz.__all__:
        assert getattr(specviz, name) is not None
        assert not (ROOT / f"{name}.py").exists() and not (ROOT / name).is_dir()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = specviz.nothing
    assert set(specviz.__all__) <= set(dir(specviz))
