"""Measurements of this machine: `python -m specviz bench`, one part a file in `specviz.experiments.bench_parts`.

Two things that are compared are timed in turn, in one process, and a ratio is the median of the ratios of neighbours;
every sample is kept beside its median and quartiles. Only one engine runs at a time, and nothing is loaded while a
clock runs. Knows nothing of the command line; of the page it knows a script that serves it.
"""
