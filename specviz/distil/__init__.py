"""Make drafts from a target alone: `python -m specviz distil`.

`pipeline` runs the steps: the target writes text (`teacher`, `prompt_format`, `synthesis`, kept in a `corpus`); a kind
of draft is made from it (`kinds`: `table_counting`, `student_training`, `feature_head_training`); `evaluation` races
the draft on held-out prompts; `card` records how it was made and what it is worth. The strategies in `specviz.drafts`
read the files that are written here.

Import levels; a module imports only from its right (a test enforces it):

    pipeline > card, synthesis > plan > kinds > feature_head_training > student_training > training > trainer >
    evaluation, table_counting, training_state > job, prompt_format, table_replay, training_examples > corpus,
    losses, teacher
"""
