"""The joined script: every module of the view, in the order of their own imports, and nothing that cannot be joined."""

import pytest

from specviz.views.web.race_view import bundle


def write(folder, **modules):
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text, "utf-8")
    return folder


def order(script):
    return [line.split("// ")[1] for line in script.splitlines() if line.startswith("// ")]


def test_modules_stand_after_those_that_they_import(tmp_path):
    folder = write(
        tmp_path,
        main="// main\nimport { a } from './late.js';\nimport { b } from './early.js';\n",
        late="// late\nimport {\n  b,\n  c,\n} from './early.js';\nexport const a = b + c;\n",
        early="// early\nexport const b = 1;\nexport function c() {}\n",
        unused="// unused\n",
    )
    script = bundle.joined(folder)
    assert order(script) == ["early", "late", "main"]
    assert "const { b, c } = (() => {" in script
    assert "import" not in script and "export" not in script


def test_a_circle_is_named(tmp_path):
    folder = write(
        tmp_path,
        main="import { a } from './one.js';\n",
        one="import { b } from './two.js';\nexport const a = 1;\n",
        two="import { a } from './one.js';\nexport const b = 1;\n",
    )
    with pytest.raises(ValueError, match=r"circle: (one\.js -> two\.js -> one\.js|two\.js -> one\.js -> two\.js)"):
        bundle.joined(folder)


def test_a_missing_module_is_named_with_its_importer(tmp_path):
    with pytest.raises(ValueError, match=r"main\.js imports gone\.js"):
        bundle.joined(write(tmp_path, main="import { a } from './gone.js';\n"))


def test_a_name_that_two_modules_export_is_refused(tmp_path):
    imports = "import { a } from './one.js';\nimport { b } from './two.js';\n"
    folder = write(
        tmp_path, main=imports, one="export const a = 1;\n", two="export const a = 2;\nexport const b = 1;\n"
    )
    with pytest.raises(ValueError, match="both export `a`"):
        bundle.joined(folder)


def test_type_comments_are_left_out_and_casts_stay(tmp_path):
    lines = ("/** @typedef {number} Count */", "/**", " * How many.", " * @type {Count}", " */")
    text = "\n".join((*lines, "export const count = /** @type {number} */ (1);", ""))
    script = bundle.joined(write(tmp_path, main="import { count } from './one.js';\n", one=text))
    assert "How many" not in script and "typedef" not in script
    assert "const count = /** @type {number} */ (1);" in script


@pytest.mark.parametrize(
    "line",
    [
        "import * as all from './other.js';",
        "import { a as b } from './other.js';",
        "import './other.js';",
        "import { a } from 'https://example.org/other.js';",
        "export default 1;",
        "export let a = 1;",
        "export { a };",
    ],
)
def test_a_form_that_cannot_be_joined_is_refused(tmp_path, line):
    with pytest.raises(ValueError, match=r"main\.js: cannot join"):
        bundle.joined(write(tmp_path, main=f"{line}\n", other="export const a = 1;\n"))


def test_every_module_of_the_view_is_part_of_the_script():
    written = {path.stem for path in bundle.FOLDER.glob("*.js")}
    assert set(bundle.modules(bundle.FOLDER)) == written
