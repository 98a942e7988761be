"""The catalogue and the Space's settings: what they offer, and that a mistake in the file is named."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from specviz.catalogue import front_matter as space
from specviz.catalogue.catalog import DEFAULT_PATH, ZeroGpu, detect_profile, load_catalog
from specviz.core.errors import InputError
from specviz.views.terminal import main

ROOT = Path(__file__).resolve().parents[2]


def document():
    """A small catalogue: three models of two tokenizers, a CPU of 4 GB."""
    model = {"parameters": 100_000_000, "tokenizer": "t", "licence": "mit"}
    return {
        "space": {
            "title": "x",
            "emoji": "x",
            "colorFrom": "blue",
            "colorTo": "gray",
            "sdk": "gradio",
            "sdk_version": "1.2.3",
            "python_version": "3.12",
            "app_file": "app.py",
            "license": "mit",
            "suggested_hardware": "cpu",
        },
        "hardware": {
            "local": {"title": "l", "targets": ["big"], "target": "big", "k": 4, "dtype": "auto", "max_new_tokens": 9},
            "cpu": {
                "title": "c",
                "targets": ["small", "big"],
                "target": "big",
                "k": 4,
                "dtype": "float32",
                "max_new_tokens": 9,
                "memory_gb": 4,
                "preload": ["big"],
            },
        },
        "models": {
            "small": {"title": "S", "source": "embedded", **model},
            "big": {"title": "B", "source": "hub:o/big@v1", **model, "parameters": 950_000_000, "gated": True},
            "other": {"title": "O", "source": "hub:o/other", **model, "tokenizer": "u"},
        },
        "pairs": [{"target": "big", "draft": "small", "k": 3}],
    }


def load(tmp_path, changed=None):
    path = tmp_path / "spaces.yaml"
    path.write_text(yaml.safe_dump(changed or document(), sort_keys=False))
    return load_catalog(path)


def test_the_repositorys_catalogue_is_sound_and_offers_what_it_must():
    catalog = load_catalog()
    assert set(catalog.hardware) == {"local", "cpu-basic", "zero-a", "t4-small", "l4x1"}
    local = catalog.targets_for(catalog.profile("local"))
    assert local[0].source == "embedded"
    assert {"SmolLM2-1.7B-Instruct", "Qwen3-4B", "Llama-3.2-3B-Instruct", "gemma-3-1b-it"} <= {
        model.hub_id.partition("/")[2] for model in local if model.hub_id
    }
    coder = catalog.model("qwen2.5-coder-1.5b")
    assert coder.fallback == "wheels:qwen2.5-coder-1.5b-instruct"
    assert [(pair.draft, pair.k) for pair in catalog.pairs_for(coder)] == [("qwen2.5-coder-0.5b", 5)]
    for profile in catalog.hardware.values():
        # a profile whose own default it cannot hold would open on another model
        assert catalog.targets_for(profile)[0].name == profile.target
        assert not catalog.model(profile.target).gated


def test_wheel_fallbacks_name_sets_that_exist_and_say_their_size():
    from specviz.sources.wheels import WHEEL_SETS

    for model in load_catalog().models.values():
        if model.fallback:
            assert WHEEL_SETS[model.fallback.removeprefix("wheels:")].download_bytes == model.download_bytes


def test_drafts_that_do_not_fit_are_listed_last_with_the_reason(tmp_path):
    catalog = load(tmp_path)
    big, small = catalog.model("big"), catalog.model("small")
    assert [(choice.model.name, choice.reason) for choice in catalog.drafts_for(big)] == [
        ("small", None),
        ("other", "other tokenizer than the target's t"),
    ]
    assert [choice.reason for choice in catalog.drafts_for(small)] == [
        "other tokenizer than the target's t",
        "not smaller than the target",
    ]
    assert [(choice.model.name, choice.reason) for choice in catalog.drafts_for(big, any_tokenizer=True)] == [
        ("small", None),
        ("other", None),
    ]
    # float32: 3.8 GB for the target alone, 4.2 GB with the draft, of 4 GB
    cpu = catalog.profile("cpu")
    assert [model.name for model in catalog.targets_for(cpu)] == ["big", "small"]
    reasons = {choice.model.name: choice.reason for choice in catalog.drafts_for(big, cpu)}
    assert reasons["small"] == "both together exceed the 4 GB of c"


def test_targets_too_large_for_the_machine_are_not_offered(tmp_path):
    changed = document()
    changed["hardware"]["cpu"]["memory_gb"] = 3.7
    catalog = load(tmp_path, changed)
    assert [model.name for model in catalog.targets_for(catalog.profile("cpu"))] == ["small"]


def test_a_model_tells_its_hub_id_its_revision_and_its_gate(tmp_path):
    catalog = load(tmp_path)
    big = catalog.model("big")
    assert (big.hub_id, big.revision, big.gated) == ("o/big", "v1", True)
    assert catalog.model("small").hub_id is None and not catalog.model("small").gated
    assert catalog.model_of(" HUB:o/big@v1").name == "big" and catalog.model_of("hub:o/none") is None
    with pytest.raises(InputError, match="no model 'none'; it has small, big, other"):
        catalog.model("none")


@pytest.mark.parametrize(
    "environment, name",
    [
        ({}, "local"),
        ({"ACCELERATOR": "t4"}, "local"),
        ({"SPACE_ID": "a/b", "ACCELERATOR": "none"}, "cpu-basic"),
        ({"SPACE_ID": "a/b"}, "cpu-basic"),
        ({"SPACE_ID": "a/b", "ACCELERATOR": "t4"}, "t4-small"),
        ({"SPACE_ID": "a/b", "ACCELERATOR": "L4"}, "l4x1"),
        ({"SPACE_ID": "a/b", "SPACES_ZERO_GPU": "true", "ACCELERATOR": "a10g"}, "zero-a"),
    ],
)
def test_the_profile_is_read_from_the_environment(environment, name):
    assert detect_profile(environment) == name
    assert name in load_catalog().hardware


def test_seconds_of_zero_gpu_are_the_worst_case_and_capped():
    # 2 + 100 * (2 lanes * 0.01 + 4 drafted * 0.005)
    gpu = ZeroGpu(2.0, 0.01, 0.005, 30.0)
    assert gpu.seconds(100, k=4, drafts=1) == pytest.approx(6.0)
    assert gpu.seconds(10_000, k=4, drafts=1) == 30.0


def change(path, value):
    def apply(document):
        *way, last = path
        for key in way:
            document = document[key]
        if value is None:
            del document[last]
        else:
            document[last] = value

    return apply


@pytest.mark.parametrize(
    "apply, words",
    [
        (change(["extra"], 1), "spaces.yaml has an unknown key 'extra'"),
        (change(["models", "big", "size"], 1), "models.big has an unknown key 'size'; the known ones are title"),
        (change(["models", "big", "name"], "x"), "models.big has an unknown key 'name'"),
        (change(["models", "big", "licence"], None), "models.big lacks the key 'licence'"),
        (change(["models", "big", "parameters"], "9"), "models.big.parameters must be a whole number, not '9'"),
        (change(["models", "big", "parameters"], True), "must be a whole number, not True"),
        (change(["models", "big", "gated"], 1), "models.big.gated must be true or false, not 1"),
        (change(["models", "big", "source"], "big"), "models.big: 'big' is not a source of weights"),
        (change(["models", "big"], "hub:o/big"), "models.big must be a mapping"),
        (change(["models"], []), "models must be a mapping"),
        (change(["hardware", "cpu", "targets"], "big"), "hardware.cpu.targets must be a list"),
        (change(["hardware", "cpu", "targets"], ["nil"]), "names the model 'nil', which is not under models"),
        (change(["hardware", "cpu", "target"], "other"), "target must be one of its targets"),
        (change(["hardware", "cpu", "draft"], 4), "hardware.cpu.draft must be a text, not 4"),
        (change(["hardware", "cpu", "k"], 65), "k must lie between 0 and 64"),
        (change(["hardware", "cpu", "dtype"], "int8"), "dtype must be one of auto, float32"),
        (change(["hardware", "cpu", "preload"], ["small"]), "names 'small', which is not of the hub"),
        (change(["hardware", "cpu", "zero_gpu"], {"base": 1}), "zero_gpu has an unknown key 'base'"),
        (change(["pairs", 0, "draft"], "other"), "does not fit: other tokenizer"),
        (change(["hardware", "cpu", "memory_gb"], float("inf")), "cpu.memory_gb must be a number that is finite"),
        (change(["hardware", "cpu", "memory_gb"], float("nan")), "cpu.memory_gb must be a number that is finite"),
        (change(["hardware", "cpu", "memory_gb"], 10**400), "cpu.memory_gb must be a number that is finite"),
        (change(["hardware", "cpu", "memory_gb"], 1e300), "cpu.memory_gb must be a number of GB above 0"),
        (change(["hardware", "cpu", "memory_gb"], -1), "cpu.memory_gb must be a number of GB above 0"),
        (change(["hardware", "cpu", "memory_gb"], 0), "cpu.memory_gb must be a number of GB above 0"),
        (change(["pairs", 0, "k"], 0), "must have a k of 1 to 64"),
    ],
)
def test_a_mistake_is_refused_with_its_place(tmp_path, apply, words):
    changed = document()
    apply(changed)
    with pytest.raises(InputError) as caught:
        load(tmp_path, changed)
    assert words in str(caught.value)


def test_a_file_that_is_missing_or_not_yaml_is_said_so(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load_catalog(tmp_path / "none.yaml")
    (tmp_path / "x.yaml").write_text("a: [")
    with pytest.raises(InputError, match="is not YAML"):
        load_catalog(tmp_path / "x.yaml")
    (tmp_path / "x.yaml").write_text("a: 2024-99-99")
    with pytest.raises(InputError, match="is not YAML"):
        load_catalog(tmp_path / "x.yaml")
    (tmp_path / "x.yaml").write_bytes(b"title: caf\xe9")
    with pytest.raises(InputError, match="is not text in UTF-8"):
        load_catalog(tmp_path / "x.yaml")


def test_reading_the_catalogue_loads_neither_torch_nor_transformers():
    code = (
        "import sys; from specviz.catalogue.catalog import load_catalog; load_catalog();"
        "import specviz.catalogue.front_matter;"
        "print({'torch', 'transformers', 'gradio'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# ---- the Space


def project(tmp_path, readme="# A title\n"):
    (tmp_path / "README.md").write_text(readme)
    (tmp_path / "requirements.txt").write_text("gradio_client==9\ngradio==1.2.3\n")
    (tmp_path / "app.py").touch()
    return load(tmp_path)


def test_the_repositorys_readme_requirements_and_catalogue_agree(capsys):
    assert main(["space", "sync", "--check"]) == 0
    assert capsys.readouterr().err == "README.md, requirements.txt and spaces.yaml agree.\n"


def test_sync_writes_the_front_matter_once_and_leaves_the_text(tmp_path):
    catalog = project(tmp_path)
    assert "space sync" in " ".join(space.check(catalog, tmp_path))
    assert space.sync(catalog, tmp_path)
    assert space.check(catalog, tmp_path) == () and not space.sync(catalog, tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("---\ntitle: x\n") and text.endswith("---\n\n# A title\n")
    front = yaml.safe_load(text.split("---")[1])
    assert front["python_version"] == "3.12"
    assert front["models"] == ["o/big", "o/other"] and front["preload_from_hub"] == ["o/big"]


def test_check_finds_a_readme_a_pin_and_an_app_that_differ(tmp_path):
    catalog = project(tmp_path)
    space.sync(catalog, tmp_path)
    readme = tmp_path / "README.md"
    readme.write_text(readme.read_text().replace("title: x", "title: y"))
    (tmp_path / "requirements.txt").write_text("gradio==1.2.4\n")
    (tmp_path / "app.py").unlink()
    problems = space.check(catalog, tmp_path)
    assert len(problems) == 3
    assert (
        "front matter" in problems[0] and "sdk_version 1.2.3, but requirements.txt pins gradio to 1.2.4" in problems[1]
    )
    assert "app.py, which is not there" in problems[2]


@pytest.mark.parametrize(
    "key, value, words",
    [
        ("hardware", "cpu", "space.hardware is not a setting of a Space"),
        ("models", ["x"], "space.models is derived"),
        ("colorTo", "mauve", "space.colorTo must be one of blue"),
        ("python_version", 3.12, "space.python_version must be there and be a text"),
        ("short_description", "x" * 61, "at most 60 characters"),
    ],
)
def test_a_setting_that_the_hub_would_refuse_is_refused(tmp_path, key, value, words):
    changed = document()
    changed["space"][key] = value
    with pytest.raises(InputError) as caught:
        space.front_matter(load(tmp_path, changed))
    assert words in str(caught.value)


def test_the_repositorys_space_runs_the_gradio_that_is_pinned():
    catalog = load_catalog()
    assert DEFAULT_PATH == ROOT / "spaces.yaml"
    pinned = space.pinned_version((ROOT / "requirements.txt").read_text(), "gradio")
    assert space.front_matter(catalog)["sdk_version"] == pinned
    assert set(space.front_matter(catalog)) <= space.KEYS
