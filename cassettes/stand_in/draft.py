"""Whether a value is a JSON Schema of draft 2020-12: what its keywords may hold, at any depth.

Taken from the draft's own description of itself (https://json-schema.org/draft/2020-12). A keyword that the
draft does not know may hold anything. Not here: the form of anchors and ids, and whether a pattern compiles
or a reference leads anywhere (which the draft's description does not ask either).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
ONE = ("additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames",
       "then", "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
NUMBERS = ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum")
COUNTS = ("maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength",
          "minProperties")  # fmt: skip
TEXTS = ("$anchor", "$comment", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "$schema", "contentEncoding",
         "contentMediaType", "description", "format", "pattern", "title")  # fmt: skip
FLAGS = ("deprecated", "readOnly", "uniqueItems", "writeOnly")


def is_schema(value: Any) -> bool:
    """Whether a value is a schema: true, false, or an object whose keywords hold what they may."""
    waiting = [value]
    while waiting:
        schema = waiting.pop()
        if isinstance(schema, bool):
            continue
        if not isinstance(schema, dict):
            return False
        for key, held in schema.items():
            if key in _CHECKS and not _CHECKS[key](held):
                return False
            if key in _INNER:
                waiting += _INNER[key](held)
    return True


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return _number(value) and value >= 0 and (isinstance(value, int) or value.is_integer())


def _names(value: Any) -> bool:
    texts = isinstance(value, list) and all(isinstance(name, str) for name in value)
    return texts and len(set(value)) == len(value)


def _dependencies(value: Any) -> bool:
    return isinstance(value, dict) and all(_names(v) for v in value.values() if isinstance(v, list))


def _type(value: Any) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return _names(value) and bool(value) and TYPES.issuperset(value)


# The schemas inside a keyword's value, which is of its form.
_INNER: Mapping[str, Callable[[Any], Iterable[Any]]] = {
    **dict.fromkeys(ONE, lambda value: [value]),
    **dict.fromkeys(MANY, lambda value: value),
    **dict.fromkeys(NAMED, lambda value: value.values()),
    "dependencies": lambda value: [inner for inner in value.values() if not isinstance(inner, list)],
}
_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(MANY, lambda value: isinstance(value, list) and bool(value)),
    **dict.fromkeys(NAMED, lambda value: isinstance(value, dict)),
    **dict.fromkeys(NUMBERS, _number),
    **dict.fromkeys(COUNTS, _count),
    **dict.fromkeys(TEXTS, lambda value: isinstance(value, str)),
    **dict.fromkeys(FLAGS, lambda value: isinstance(value, bool)),
    **dict.fromkeys(("enum", "examples"), lambda value: isinstance(value, list)),
    "multipleOf": lambda value: _number(value) and value > 0,
    "required": _names,
    "type": _type,
    "dependencies": _dependencies,
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(_names, value.values())),
    "$vocabulary": lambda value: isinstance(value, dict),
}
