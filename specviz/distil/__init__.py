"""Drafts made from a target: `python -m specviz distil`.

The target writes text (`corpus`, `synthesise`), a kind makes a draft from it (`kinds`), held-out prompts
say what the draft is worth (`evaluation`), and a card says how it was made (`card`). Drafting itself is not done here:
what a kind writes is read by a strategy in `specviz.drafts`.
"""
