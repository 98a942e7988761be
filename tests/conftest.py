"""What the tests share: the embedded model, processes to sample in, one thread for tiny models, and deno."""

import pytest


@pytest.fixture
def one_thread(monkeypatch):
    """Tiny products gain nothing from a second thread, and lose much where something else uses the cores."""
    import torch

    threads = torch.get_num_threads()
    monkeypatch.setenv("CPU_CORES", "1")
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def workers():
    """The processes in which law tests sample."""
    from support.law import Workers

    pool = Workers()
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def modules():
    """The race view's JavaScript without a page: `evaluate(code, argument)` on what its modules export, as `M`."""
    from support.deno_kit import Modules

    modules = Modules()
    yield modules
    modules.close()


@pytest.fixture(scope="session")
def embedded():
    """The embedded model in float32 on the CPU. Only its not being fetched is a reason to skip, never its failing."""
    from specviz import load
    from specviz.core.errors import LoadError
    from specviz.sources import resolve

    try:
        resolve("embedded")
    except LoadError as error:
        pytest.skip(f"the embedded model cannot be fetched: {error}")
    return load("embedded", device="cpu", dtype="float32")
