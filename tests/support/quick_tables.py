"""A table model's passes in a few tensor operations: what thousands of runs of a law test are made of.

The older token is still read back from the cache, so a wrong rollback shows. Trees, whose masks must be obeyed, run
through the module itself; that both ways say the same is tested.
"""

import torch

from specviz.models.plain import PlainExecutor


class QuickTables(PlainExecutor):
    """In place of the executor of a `tiny.TableLM`; the tables of all layers are summed once."""

    path = "tables"

    def __init__(self, module, context_length):
        super().__init__(module, context_length)
        self._tables = sum(layer.weight.detach() for layer in module.layers)
        self._size = module.config.vocab_size

    @classmethod
    def speed_up(cls, model):
        """The same LanguageModel, quicker."""
        model._set_executor(cls(model.executor.module, model.context_length))
        return model

    def first_layers(self, count):
        return QuickTables(super().first_layers(count).module, self._limit)

    def with_layers(self, *facts, **more):
        return QuickTables(super().with_layers(*facts, **more).module, self._limit)

    def run(self, ids, start, cache, rows=0, hidden=False, tree=None):
        if tree is not None:
            return super().run(ids, start, cache, rows, hidden, tree)
        first, stored = int(start), (ids + 1).float().view(1, 1, -1, 1)
        if cache.keys[0] is None:
            cache.write(0, stored, stored, torch.arange(first, first + len(ids)))
        kept = cache.keys[0][0, 0, :, 0]
        kept[first : first + len(ids)] = stored.flatten()
        before = kept[max(0, first - 1) : first - 1 + len(ids)]
        older = before if first else torch.cat([kept.new_zeros(1), before])
        logits = self._tables[older.long() * self._size + ids]
        return (logits, logits) if hidden else logits
