"""The hub: what is fetched, what its refusals become, and what is used when it does not answer.

A small server of the hub's protocol stands in for it, so that the hub's own client runs, its errors included.
"""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from huggingface_hub import constants
from support.tiny_sources import refusal, tiny_llama, tiny_tokenizer

from specviz.core.errors import LoadError
from specviz.sources import hub, load_checkpoint, resolve
from specviz.sources.hub import HubUnreachable

COMMIT = "1" * 40


class FakeHub:
    """Serves one repository, `owner/tiny`, from a dict of names to bytes; `refuse` holds (status, error code)."""

    def __init__(self):
        self.files, self.refuse, self.downloads = {}, None, []
        hub_itself = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                hub_itself.answer(self, body=True)

            def do_HEAD(self):
                hub_itself.answer(self, body=False)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, request, body):
        path = request.path.partition("?")[0]
        api = "/api/models/owner/tiny"
        if self.refuse:
            status, code = self.refuse
            return self.send(request, status, b"{}", {"X-Error-Code": code})
        if path in (api, f"{api}/revision/main", f"{api}/revision/v1"):
            names = [{"rfilename": name, "size": len(data)} for name, data in self.files.items()]
            info = {"id": "owner/tiny", "sha": COMMIT, "siblings": names, "cardData": {"license": "mit"}}
            return self.send(request, 200, json.dumps(info).encode())
        if path == f"{api}/tree/{COMMIT}":
            tree = [{"type": "file", "path": name, "size": len(data), "oid": "0"} for name, data in self.files.items()]
            return self.send(request, 200, json.dumps(tree).encode())
        name = path.removeprefix(f"/owner/tiny/resolve/{COMMIT}/")
        if name in self.files:
            if body:
                self.downloads.append(name)
            tag = hashlib.sha1(self.files[name]).hexdigest()
            return self.send(request, 200, self.files[name], {"X-Repo-Commit": COMMIT, "ETag": f'"{tag}"'}, body)
        code = "RevisionNotFound" if path.startswith(api) else "RepoNotFound"
        return self.send(request, 404, b"{}", {"X-Error-Code": code})

    def send(self, request, status, data, headers=(), body=True):
        request.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **dict(headers)}.items():
            request.send_header(name, value)
        request.end_headers()
        if body and request.command == "GET":
            request.wfile.write(data)

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def fake(tmp_path, monkeypatch):
    tiny_llama().save_pretrained(tmp_path / "tiny")
    tiny_tokenizer().save_pretrained(tmp_path / "tiny")
    fake = FakeHub()
    fake.files = {path.name: path.read_bytes() for path in (tmp_path / "tiny").iterdir()}
    monkeypatch.setattr(constants, "ENDPOINT", fake.url)
    files = "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", fake.url + files)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    yield fake
    fake.stop()


def test_only_what_a_causal_model_needs_is_fetched_and_fetched_once(fake):
    fake.files |= {"pytorch_model.bin": b"x", "consolidated.safetensors": b"x", "onnx/model.onnx": b"x", "run.py": b"x"}
    said = []
    checkpoint = resolve("hub:owner/tiny", lambda fraction, sentence: said.append((fraction, sentence)))
    assert checkpoint.revision == COMMIT and checkpoint.licence == "mit" and checkpoint.eos_token_ids == (3,)
    assert "model.safetensors" in fake.downloads and "config.json" in fake.downloads
    assert not {"pytorch_model.bin", "consolidated.safetensors", "onnx/model.onnx", "run.py"} & set(fake.downloads)
    assert said[0] == (0.0, "Asking the hub for owner/tiny.") and said[-1] == (1.0, "owner/tiny is here.")
    assert any(sentence.startswith("Fetching owner/tiny: ") and fraction > 0.9 for fraction, sentence in said)
    fake.downloads.clear()
    model, _ = load_checkpoint(resolve("hub:owner/tiny@v1"), "float32")
    assert fake.downloads == [] and model.config.vocab_size == 12


@pytest.mark.parametrize(
    "refuse, words",
    [
        ((401, "RepoNotFound"), "no model 'owner/tiny', or it is private"),
        ((404, "RepoNotFound"), "no model 'owner/tiny'"),
        ((403, "GatedRepo"), "is gated: accept its terms"),
        ((401, "GatedRepo"), "set HF_TOKEN"),
        ((403, ""), "The hub refuses owner/tiny"),
    ],
)
def test_a_refusal_of_the_hub_says_what_to_do(fake, refuse, words):
    fake.refuse = refuse
    message = refusal("hub:owner/tiny")
    assert words in message and "Error" not in message


def test_an_unknown_revision_or_a_malformed_id_is_said_so(fake):
    assert "has no revision 'v9'" in refusal("hub:owner/tiny@v9")
    for name in ("owner/tiny/more", "../x", "a b"):
        assert "write it as owner/name" in refusal(f"hub:{name}")
    assert "write it as owner/name" in refusal("hub:a--b/c")


@pytest.mark.parametrize(
    "name, words", [("pytorch_model.bin", "pickle"), ("tiny.gguf", "gguf:FILE"), ("notes.txt", "no weights")]
)
def test_a_repository_without_safetensors_is_refused_before_anything_is_fetched(fake, name, words):
    fake.files[name] = fake.files.pop("model.safetensors")
    assert words in refusal("hub:owner/tiny")
    assert fake.downloads == []


def test_what_is_cached_is_used_when_the_hub_is_down_broken_or_switched_off(fake, monkeypatch):
    online = resolve("hub:owner/tiny")
    fake.refuse = (503, "")
    broken = resolve("hub:owner/tiny")
    fake.stop()
    down = resolve("hub:owner/tiny")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    off = resolve("hub:owner/tiny")
    for checkpoint in (broken, down, off):
        assert checkpoint.folder == online.folder and checkpoint.revision == COMMIT
        assert "copy in its cache" in checkpoint.note
    assert load_checkpoint(off, "float32")[0].config.hidden_size == 8


def test_without_the_hub_and_without_a_copy_the_fallback_is_taken(fake, tmp_path):
    fake.stop()
    with pytest.raises(HubUnreachable, match="does not answer and owner/tiny is not in its cache"):
        resolve("hub:owner/tiny")
    checkpoint = resolve("hub:owner/tiny", fallback=f"path:{tmp_path / 'tiny'}")
    assert checkpoint.source == f"path:{tmp_path / 'tiny'}" and "hub does not answer" in checkpoint.note


def test_the_fallback_does_not_hide_a_refusal(fake, tmp_path):
    fake.refuse = (403, "GatedRepo")
    with pytest.raises(LoadError, match="is gated"):
        resolve("hub:owner/tiny", fallback=f"path:{tmp_path / 'tiny'}")


def test_a_cache_with_the_config_alone_is_not_taken_for_the_model(fake, tmp_path):
    snapshot = tmp_path / "hub" / "models--owner--tiny" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_bytes(fake.files["config.json"])
    refs = tmp_path / "hub" / "models--owner--tiny" / "refs"
    refs.mkdir()
    (refs / "main").write_text(COMMIT)
    fake.stop()
    with pytest.raises(HubUnreachable):
        resolve("hub:owner/tiny")


def test_a_full_disk_is_said_before_the_download_and_during_it(fake, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("huggingface_hub.snapshot_download", full)
    assert "The disk is full" in refusal("hub:owner/tiny")
    monkeypatch.setattr(hub, "require_space", lambda path, count, what: (_ for _ in ()).throw(LoadError(f"{what}!")))
    assert refusal("hub:owner/tiny") == "fetching owner/tiny!"
