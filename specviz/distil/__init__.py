"""Make drafts from a target alone: `python -m specviz distil`.

`pipeline` runs the steps: the target writes text (`teacher`, `prompt_format`, `synthesis`, kept in a `corpus`); a kind
of draft is made from it (`kinds`: `table_counting`, `student_training`, `feature_head_training`); `evaluation` races
the draft on held-out prompts; `card` records how it was made and what it is worth. The strategies in `specviz.drafts`
read the files that are written here.
"""
