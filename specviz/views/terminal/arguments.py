"""An argument parser whose complaints are sentences, and the settings that commands share."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from specviz.core.errors import InputError
from specviz.core.settings import Settings
from specviz.core.spelling import number


class Parser(argparse.ArgumentParser):
    """Raises InputError instead of printing its usage and leaving."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message[0].upper()}{message[1:]}; see {self.prog} --help.")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The arguments of Settings, as `settings_from` reads them back."""
    group = parser.add_argument_group("decoding")
    numbers = (
        ("-k", "k", 5, "tokens drafted in a round; 0 decodes as standard"),
        ("--max-new-tokens", "max_new_tokens", 128, "the longest output"),
        ("--temperature", "temperature", 0, "0 is greedy"),
        ("--top-k", "top_k", 0, "sample from the k likeliest tokens; 0 is off"),
        ("--top-p", "top_p", 1, "sample from the likeliest tokens of this mass; 1 is off"),
        ("--seed", "seed", 0, "the same seed repeats the same run"),
        ("--repetition-penalty", "repetition_penalty", 1, "on what stands in prompt or output; 1 is off"),
        ("--presence-penalty", "presence_penalty", 0, "on what stands in the output; 0 is off"),
        ("--frequency-penalty", "frequency_penalty", 0, "on how often it stands in the output; 0 is off"),
    )
    for flag, name, default, words in numbers:
        help_ = f"{words} (default {default})"
        group.add_argument(flag, dest=name, type=number, default=default, metavar="N", help=help_)
    group.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end before this text; repeatable")
    group.add_argument("--ignore-eos", action="store_true", help="go on after the end-of-sequence token")
    group.add_argument("--no-telemetry", action="store_true", help="leave out what only explains a run")


def settings_from(arguments: argparse.Namespace) -> Settings:
    """Raises InputError, in words, for a value out of its range."""
    return Settings(
        k=arguments.k,
        max_new_tokens=arguments.max_new_tokens,
        temperature=arguments.temperature,
        top_k=arguments.top_k,
        top_p=arguments.top_p,
        seed=arguments.seed,
        stop=tuple(arguments.stop),
        ignore_eos=arguments.ignore_eos,
        repetition_penalty=arguments.repetition_penalty,
        presence_penalty=arguments.presence_penalty,
        frequency_penalty=arguments.frequency_penalty,
        telemetry=not arguments.no_telemetry,
    )
