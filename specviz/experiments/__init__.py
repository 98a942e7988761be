"""Measurements of this machine, and what measurements are made of: repeated in turn, paired, aggregated.

`python -m specviz bench` runs a benchmark (`benchmark`), one part a file in `bench_parts`. What is compared is timed in
turn in one process (`repeat`), a ratio is the median of the ratios of neighbours, and every sample stays beside its
median and quartiles (`aggregate`). Only one engine runs at a time, and nothing is loaded while a clock runs. Results
are frozen records with one JSON form (`json_form`). Nothing here knows the command line, and of the page only the
script that serves it.

Import levels; a module imports only from its right (a test enforces it):

    benchmark > bench_parts > first_token > comparison_tables, harness > comparison_result, paired > bench_plan,
    bench_report, comparison_log, serving > aggregate, comparison, engine_speed, json_form, machine_facts,
    processes, prompt_set, repeat, writers
"""
