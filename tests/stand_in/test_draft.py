"""The keywords of JSON Schema against a library that reads the draft's own description of itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, SchemaError
from jsonschema_specifications import REGISTRY

from cassettes.stand_in.draft import is_schema

DRAFT = "https://json-schema.org/draft/2020-12"
PARTS = ("core", "applicator", "unevaluated", "validation", "meta-data", "format-annotation", "content")
NAMES = {
    key
    for part in (f"{DRAFT}/schema", *(f"{DRAFT}/meta/{name}" for name in PARTS))
    for key in REGISTRY.contents(part)["properties"]
}
FORMS = {"$id", "$schema", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "$vocabulary"}
KEYS = (*sorted(name for name in NAMES - FORMS if not name.startswith("$recursive")), "own")
LIKELY = (None, True, 0, 1, -1, 1.5, "", "object", [], ["a"], ["a", "a"], [{}], {}, {"a": {}}, {"a": ["b"]},
          {"a": ["b", "b"]}, {"a": {"type": 1}}, [{"type": 1}], {"type": 1})  # fmt: skip
SMALL = (
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.sampled_from((0.5, 2.0, -1.0, "object", "string", "x"))
)
VALUES = st.recursive(
    SMALL,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
        | st.lists(st.sampled_from(("array", "null", "x")), max_size=3)
    ),
    max_leaves=12,
)


def in_order(value: Any) -> bool:
    """What the library says of a schema."""
    try:
        Draft202012Validator.check_schema(value)
    except SchemaError:
        return False
    return True


@given(st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=4))
@settings(max_examples=500)
def test_the_library_says_the_same(schema: dict[str, Any]) -> None:
    """Any keywords with any values are judged as the library judges them."""
    assert is_schema(schema) == in_order(schema)


@pytest.mark.parametrize("key", KEYS)
def test_each_keyword_is_judged(key: str) -> None:
    """Wrong and right values of each keyword of the draft, beside what the library says of them."""
    assert [is_schema({key: value}) for value in LIKELY] == [in_order({key: value}) for value in LIKELY]


@pytest.mark.parametrize("value", [None, 1, "object", [], [True]])
def test_what_is_no_object_is_no_schema(value: Any) -> None:
    """Only true, false and an object can be a schema."""
    assert not is_schema(value)
    assert is_schema({"not": True, "items": False})
    assert not is_schema({"items": value})
