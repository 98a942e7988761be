"""Sources: what a source text resolves to, what is refused and in which words, and what a load gives back."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.tiny_sources import refusal, tiny_llama, tiny_tokenizer
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertModel,
    Gemma3Config,
    Gemma3ForConditionalGeneration,
)

from specviz.core.errors import LoadError
from specviz.sources import TerminalBar, checkpoint_config, load_checkpoint, normalise, reading, resolve
from specviz.sources.progress import part, size


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "tiny"
    tiny_llama().save_pretrained(path)
    tiny_tokenizer().save_pretrained(path)
    return path


def test_a_saved_folder_comes_back_weight_for_weight_in_the_dtype_asked_for(folder):
    saved = tiny_llama().state_dict()
    for dtype in (torch.float32, "bfloat16"):
        model, tokenizer = load_checkpoint(resolve(f"path:{folder}"), dtype)
        wanted = torch.bfloat16 if dtype == "bfloat16" else dtype
        assert not model.training and next(model.parameters()).device.type == "cpu"
        for name, weight in model.state_dict().items():
            assert weight.dtype == wanted and torch.equal(weight, saved[name].to(wanted)), name
        assert tokenizer("a b c")["input_ids"] == [1, 2, 4]


def test_a_checkpoint_knows_its_facts_without_reading_weights(folder):
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [3, 5, 3]}))
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    (folder / "README.md").write_text("---\nlicense: mit\n---\nA card.\n")
    checkpoint = resolve(f"  PATH:{folder} ")
    assert checkpoint.source == f"path:{folder}" and checkpoint.name == "tiny"
    assert checkpoint.eos_token_ids == (3, 5) and checkpoint.has_chat_template and checkpoint.licence == "mit"
    assert checkpoint_config(checkpoint).num_hidden_layers == 2


def test_end_of_text_ids_come_from_the_config_where_there_is_no_generation_config(folder):
    (folder / "generation_config.json").unlink()
    checkpoint = resolve(f"path:{folder}")
    assert checkpoint.eos_token_ids == (3,) and not checkpoint.has_chat_template and checkpoint.licence is None


@pytest.mark.parametrize(
    "asked, note",
    [
        ({"suppress_tokens": [1, 2]}, "suppress_tokens=[1, 2]; specviz does not apply this"),
        ({"min_new_tokens": 20, "no_repeat_ngram_size": 2}, "no_repeat_ngram_size=2, min_new_tokens=20; specviz"),
        ({"bad_words_ids": [[4]], "forced_bos_token_id": 0}, "bad_words_ids=[[4]], forced_bos_token_id=0"),
        ({"repetition_penalty": 1.3}, "repetition_penalty=1.3: set it"),
    ],
)
def test_what_a_generation_config_asks_of_decoding_is_told_by_name(folder, asked, note):
    (folder / "generation_config.json").write_text(json.dumps(asked))
    assert note in resolve(f"path:{folder}").note


def test_what_a_generation_config_leaves_at_its_default_is_not_told(folder):
    neutral = {"repetition_penalty": 1.0, "num_beams": 1, "min_length": 0, "temperature": 0.7, "top_k": 20}
    (folder / "generation_config.json").write_text(json.dumps(neutral))
    checkpoint = resolve(f"path:{folder}")
    assert checkpoint.note is None
    assert checkpoint.usual_settings == (("temperature", 0.7), ("top_k", 20), ("repetition_penalty", 1.0))


@pytest.mark.parametrize("value", ["x", [[1]], True, {}, -1, 99999, 12])
def test_an_end_token_that_is_no_token_id_is_left_out(folder, value):
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": value}))
    assert resolve(f"path:{folder}").eos_token_ids == ()


@pytest.mark.parametrize("source", ["", "tiny", "ftp:x", "hub:", "path: ", "embedded:x"])
def test_an_unknown_source_is_answered_with_the_known_ones(source):
    assert "Use embedded, hub:ID" in refusal(source)


def test_a_source_is_compared_in_its_normal_form():
    assert normalise(" Embedded ") == "embedded" and normalise("HUB: a/B@v1 ") == "hub:a/B@v1"


def test_a_folder_that_is_not_there_or_is_a_file_is_refused(tmp_path):
    assert "There is no folder" in refusal(f"path:{tmp_path / 'none'}")
    assert "There is no folder" in refusal("path:~nobody-of-that-name/model")
    assert "There is no folder" in refusal("path:" + 5000 * "x")
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    assert "gguf:FILE" in refusal(f"path:{tmp_path / 'x.gguf'}")
    assert f"gguf:{tmp_path / 'x.gguf'}" in refusal(f"path:{tmp_path}")


@pytest.mark.parametrize("pickle", ["pytorch_model.bin", "model.pt", "consolidated.00.pth"])
def test_pickled_weights_are_refused_before_anything_reads_them(folder, pickle):
    (folder / "model.safetensors").rename(folder / pickle)
    assert "pickle" in refusal(f"path:{folder}")


def test_a_folder_without_weights_or_tokenizer_or_config_says_which(folder):
    (folder / "model.safetensors").rename(folder.parent / "kept")
    assert "has no weights" in refusal(f"path:{folder}")
    (folder.parent / "kept").rename(folder / "model.safetensors")
    (folder / "tokenizer.json").unlink()
    assert "without a tokenizer" in refusal(f"path:{folder}")
    (folder / "config.json").unlink()
    assert "no config.json" in refusal(f"path:{folder}")
    (folder / "adapter_config.json").write_text("{}")
    assert "adapter" in refusal(f"path:{folder}")


def test_an_incomplete_set_of_shards_is_refused(folder):
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    shard = "model-00001-of-00002.safetensors"
    save_file(weights, folder / shard, metadata={"format": "pt"})
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(weights, shard)}))
    assert load_checkpoint(resolve(f"path:{folder}"), "float32")[0].config.hidden_size == 8
    for outside in ("model-00002-of-00002.safetensors", f"../tiny/{shard}"):
        index.write_text(json.dumps({"metadata": {}, "weight_map": {"a": shard, "b": outside}}))
        assert "1 of 2 weight files" in refusal(f"path:{folder}")


def test_what_is_not_a_causal_language_model_is_refused_by_its_kind(tmp_path):
    facts = {"vocab_size": 12, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1}
    BertModel(BertConfig(**facts, num_attention_heads=2)).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    assert "not a causal language model but BertModel" in refusal(f"path:{tmp_path}")


def test_code_that_comes_with_a_model_is_never_run(folder):
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "strange", "auto_map": {"AutoModelForCausalLM": "evil.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text("import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n")
    assert "code of its own, which is never run" in refusal(f"path:{folder}")
    config["model_type"] = "llama"
    (folder / "config.json").write_text(json.dumps(config))
    load_checkpoint(resolve(f"path:{folder}"), "float32")
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"architectures": ["LlamaForCausalLM"]}'])
def test_a_corrupt_config_is_refused(folder, text):
    (folder / "config.json").write_text(text)
    assert "config of tiny" in refusal(f"path:{folder}")


def test_damaged_files_are_load_errors_in_words(folder):
    whole = (folder / "model.safetensors").read_bytes()
    checkpoint = resolve(f"path:{folder}")
    for broken in (whole[:-100], b"\0" * 64, b""):
        (folder / "model.safetensors").write_bytes(broken)
        with pytest.raises(LoadError, match="weights of tiny cannot be read"):
            load_checkpoint(checkpoint, "float32")
    (folder / "model.safetensors").write_bytes(whole)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(LoadError, match="tokenizer of tiny cannot be read"):
        load_checkpoint(checkpoint, "float32")
    (folder / "config.json").write_text('{"model_type": "llama", "hidden_size": "wide"}')
    with pytest.raises(LoadError, match="config of tiny cannot be read"):
        checkpoint_config(checkpoint)


def test_a_tokenizer_that_tokenizers_cannot_read_is_a_load_error(folder):
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pre_tokenizer": {"type": "OfNextYear"}}))
    with pytest.raises(LoadError, match="tokenizer of tiny cannot be read"):
        load_checkpoint(resolve(f"path:{folder}"), "float32")


def test_a_tokenizer_that_needs_a_package_names_it(folder, monkeypatch):
    def fail(*args, **options):
        raise ValueError("You need to have sentencepiece or tiktoken installed to convert a slow tokenizer.")

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", fail)
    monkeypatch.setattr(reading, "find_spec", lambda module: None)
    with pytest.raises(LoadError) as caught:
        load_checkpoint(resolve(f"path:{folder}"), "float32")
    assert "needs the package sentencepiece" in str(caught.value) and "damaged" not in str(caught.value)


@pytest.mark.parametrize("method", ["awq", "gptq", "bitsandbytes", "fp8"])
def test_weights_in_a_packed_form_are_refused_by_its_name(folder, method):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": {"quant_method": method}}))
    assert f"quantised by {method}, which is not supported" in refusal(f"path:{folder}")


def test_the_text_model_of_a_multimodal_model_is_read(tmp_path):
    torch.manual_seed(0)
    size = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
    text = {**size, "vocab_size": 40, "num_hidden_layers": 2, "num_key_value_heads": 1, "head_dim": 8}
    vision = {**size, "num_hidden_layers": 1, "image_size": 28, "patch_size": 14}
    whole = Gemma3ForConditionalGeneration(
        Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4)
    ).eval()
    whole.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    checkpoint = resolve(f"path:{tmp_path}")
    assert "only its text model is run" in checkpoint.note and checkpoint_config(checkpoint).vocab_size == 40
    model, _ = load_checkpoint(checkpoint, "float32")
    ids = torch.arange(20)[None]
    with torch.no_grad():
        assert type(model).__name__ == "Gemma3ForCausalLM" and torch.equal(model(ids).logits, whole(ids).logits)


def test_no_weight_is_left_to_chance(folder):
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(LoadError, match="lacks 1 weights"):
        load_checkpoint(resolve(f"path:{folder}"), "float32")


def test_weights_of_another_shape_are_refused(folder):
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"] = torch.ones(9)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(LoadError):
        load_checkpoint(resolve(f"path:{folder}"), "float32")


def test_an_unknown_dtype_is_refused(folder):
    with pytest.raises(LoadError, match="choose one of float32, bfloat16, float16"):
        load_checkpoint(resolve(f"path:{folder}"), "int4")


def test_sizes_and_partial_progress_read_as_people_read_them():
    assert [size(n) for n in (12, 98_362_432, 1_570_455_833)] == ["12 bytes", "98 MB", "1.6 GB"]
    seen = []
    step = part(lambda fraction, sentence: seen.append((fraction, sentence)), 0.5, 0.9)
    step(0.0, "x"), step(0.5, "y"), step(7.0, "z")
    assert seen == [(0.5, "x"), (0.7, "y"), (0.9, "z")]


def test_a_bar_draws_in_place_on_a_terminal_and_prints_a_line_a_sentence_elsewhere():
    class Stream:
        def __init__(self, terminal):
            self.text, self.isatty = "", lambda: terminal

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    terminal, pipe = Stream(True), Stream(False)
    for stream in (terminal, pipe):
        bar = TerminalBar(stream, interval_seconds=0.0)
        bar(0.0, "Fetching."), bar(0.5, "Fetching."), bar(1.0, "Ready.")
        bar.close()
    assert pipe.text == "Fetching.\nReady.\n"
    assert terminal.text.count("\r") == 3 and terminal.text.endswith("100% Ready.\n")
    assert "[##############..............]  50% Fetching." in terminal.text
