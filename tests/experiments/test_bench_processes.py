"""The parts of the benchmark that start processes of their own, on a tiny checkpoint."""

import json

import pytest
from support.tiny_checkpoints import save_llama

from specviz.views.terminal import main


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return save_llama(tmp_path_factory.mktemp("target"), context=1024)


@pytest.fixture
def part(capfd, target, one_thread):
    def run(name):
        arguments = ["bench", "--quick", "--json", "--dtype", "float32", "-k", "3", "--target", target]
        status = main([*arguments, "--only", name])
        out, err = capfd.readouterr()
        assert status == 0, err
        return json.loads(out)

    return run


@pytest.mark.slow
def test_the_page_is_measured_against_the_same_races_headless(part):
    page = part("page")["parts"]["page"]
    assert len(page["ratio"]["samples"]) == len(page["turn_ratio"]["samples"]) == 1
    ours, alone = (page[side]["samples"][0] for side in ("page", "headless"))
    assert page["ratio"]["samples"][0] == pytest.approx(ours / alone)
    assert page["app_start_to_first_round_seconds"] > 0 and page["app_peak_bytes"] > 50e6
    assert page["tokens"] >= 12 and all(share > 0 for share in page["cores_outside_engine"]["samples"])


@pytest.mark.slow
def test_start_up_tells_the_first_start_from_the_later_ones_and_what_memory_they_took(part):
    startup = part("startup")["parts"]["startup"]
    assert startup["first_start_seconds"] > 0 and len(startup["later_starts_seconds"]["samples"]) == 1
    assert 50e6 < startup["first_token_bytes"] <= startup["peak_bytes"]
