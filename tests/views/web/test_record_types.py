"""records.js is what the Python records generate, and a hint that has no JSON is refused."""

import pytest

from specviz.traces import Alternative, Reason, Token
from specviz.views.web.race_view import record_types


def test_records_js_is_up_to_date():
    assert record_types.FILE.read_text("utf-8") == record_types.script(), "run `make records`"


@pytest.mark.parametrize(
    ("hint", "wanted"),
    [
        (float | None, "number | null"),
        (int | float | str, "number | string"),
        (tuple[Alternative, ...] | None, "Alternative[] | null"),
        (dict[str, str | list[str]], "Record<string, string | string[]>"),
        (Token, "Token"),
        (Reason, "Reason"),
    ],
)
def test_a_type_hint_becomes_the_type_of_its_json(hint, wanted):
    assert record_types._type(hint) == wanted


def test_a_hint_of_a_new_form_is_refused():
    with pytest.raises(TypeError, match="record_types.py"):
        record_types._type(set[int])
