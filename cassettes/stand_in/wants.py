"""Which lookups a question calls for, from the words of the question and of the tools' descriptions.

Generic: no tool, fact or id is known here. A tool is relevant when its description shares a telling word
with the question; its required parameters come from the question (by `pattern` or `enum`) and from JSON
results, where a value stands under the parameter's own name. All of this comes from a client, so only the
beginning of a long text is read, and the looking stops when one request has cost enough (see `patterns`).
Not here: what was asked already.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from cassettes.stand_in.patterns import Patience
from cassettes.stand_in.plan import Lookup, lookup

LONGEST_NUMBER = 4000  # digits; Python turns longer texts into no number
LONGEST_SAID = 20_000  # characters of a question that are read

_STOP_WORDS = """
    about after again also another anything because been before being both call called could does doing done
    each either else even ever every find from function gave getting give have hello here into just know
    like list look looks made make many might more most much must need only other others over please result
    same shall should show since some still such sure take tell than thank thanks that their them then there
    these they thing this those tool under until upon used uses very want wants well went were what when
    which while whole whom whose will wish with without would your yours
"""
STOP = frozenset(_STOP_WORDS.split())
LIMIT = 100
_VERB = re.compile(r"(?:^|(?<=[.:;]))\s*Returns?\b")
Facts = Callable[[Lookup], str | None]


@dataclass(frozen=True)
class Tool:
    """One tool definition, as far as it matters here."""

    name: str
    words: frozenset[str]
    required: tuple[str, ...]
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Sources:
    """Where values may come from: the question, the user's earlier texts, and facts known already."""

    question: str
    earlier: str
    known: Sequence[Any]
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True)
class Wants:
    """The lookups a question calls for, in order, and the parameters nobody has given a value for."""

    lookups: tuple[Lookup, ...]
    missing: tuple[str, ...]


def stems(text: str) -> list[str]:
    """The content words of a text in order: lower case, four letters or more, crude stems."""
    found = re.findall(r"[^\W\d_]{4,}", text.lower())
    return [_stem(word) for word in found if word not in STOP]


def tools_of(body: Mapping[str, Any]) -> list[Tool]:
    """The tools of a request that can be called as plain functions."""
    listed = body.get("tools")
    found = [t for t in listed if isinstance(t, dict)] if isinstance(listed, list) else []
    return [_tool(t) for t in found if isinstance(t.get("input_schema"), dict) and not t.get("defer_loading")]


def wanted(
    question: str, earlier: str, tools: Sequence[Tool], fact: Facts, known: Iterable[str] = ()
) -> Wants:
    """Every lookup that the question calls for, given what is known so far.

    Values for parameters come from the question, and from the facts that the question itself led to;
    only where both give none, from an earlier question and from all other `known` facts.
    """
    said = _sources(question, earlier, known)
    chosen, waiting = _relevant(said, tools)
    values: list[Any] = []
    lookups: dict[Lookup, None] = {}
    while True:
        found = dict.fromkeys(i for tool in chosen for i in _lookups(tool, said, values))
        if len(found) <= len(lookups):  # counted without repeats: a tool may be defined twice
            break
        lookups = found
        values = [_json(text) for text in map(fact, lookups) if text is not None]
    resolved = {item.tool for item in lookups}
    missing = [name for t in waiting if t.name not in resolved for name in _unresolved(t, said, values)]
    return Wants(tuple(lookups), tuple(dict.fromkeys(missing)))


def resolved(tool: Tool, question: str, earlier: str, known: Iterable[str] = ()) -> list[Lookup]:
    """The lookups that one tool is ready for, relevant or not."""
    return _lookups(tool, _sources(question, earlier, known), [])


def _sources(question: str, earlier: str, known: Iterable[str]) -> Sources:
    return Sources(question[:LONGEST_SAID], earlier[:LONGEST_SAID], [_json(text) for text in known])


def _relevant(said: Sources, tools: Sequence[Tool]) -> tuple[list[Tool], list[Tool]]:
    """The relevant tools in their order, and those of them that the question alone does not make ready."""
    telling = _telling(frozenset(stems(said.question)), tools)
    relevant = [tool for tool in tools if tool.words & telling]
    ready = [all(_said(tool, name, said, said.question) for name in tool.required) for tool in relevant]
    pairs = list(zip(relevant, ready, strict=True))
    served = frozenset(word for tool, is_ready in pairs if is_ready for word in tool.words & telling)
    open_words = telling - served
    waiting = [tool for tool, is_ready in pairs if not is_ready and tool.words & open_words]
    return [tool for tool, is_ready in pairs if is_ready or tool.words & open_words], waiting


def _telling(words: frozenset[str], tools: Sequence[Tool]) -> frozenset[str]:
    # A word that many of the tools share ("order", at an order desk) tells nothing about which one is meant.
    spread = Counter(word for tool in tools for word in tool.words & words)
    few = frozenset(w for w, n in spread.items() if n <= max(len(tools) // 3, 2) and n < len(tools))
    return few or frozenset(spread)


def _lookups(tool: Tool, said: Sources, values: Sequence[Any]) -> list[Lookup]:
    choices = [_choices(tool, name, said, values) for name in tool.required if said.patience.spend()]
    if not said.patience.spend():
        return []
    rows = itertools.islice(itertools.product(*choices), LIMIT)
    return [lookup(tool.name, dict(zip(tool.required, row, strict=True))) for row in rows]


def _unresolved(tool: Tool, said: Sources, values: Sequence[Any]) -> list[str]:
    return [name for name in tool.required if not _choices(tool, name, said, values)]


def _choices(tool: Tool, name: str, said: Sources, values: Sequence[Any]) -> list[Any]:
    current = [*_said(tool, name, said, said.question), *_found(tool, name, said, values)]
    current = current or _said(tool, name, said, said.earlier) or _found(tool, name, said, said.known)
    return list(dict.fromkeys(current))


def _found(tool: Tool, name: str, said: Sources, values: Sequence[Any]) -> list[Any]:
    return _fitting(_schema(tool, name), (v for value in values for v in _under(value, name, said)), said)


def _said(tool: Tool, name: str, said: Sources, text: str) -> list[Any]:
    schema = _schema(tool, name)
    if isinstance(schema.get("enum"), list):
        found: Sequence[str] = _named_options(schema["enum"], text) if said.patience.spend() else ()
    elif "pattern" in schema or schema.get("type", "string") != "string":
        found = _ids(text)
    else:
        found = _loose(text)
    return _fitting(schema, found, said)


def _fitting(schema: Mapping[str, Any], found: Iterable[Any], said: Sources) -> list[Any]:
    """The different values that a parameter may have, cast; no more of them than lookups are made."""
    kept: dict[Any, None] = {}
    for value in found:
        if len(kept) == LIMIT or not said.patience.spend():
            break
        if _fits(schema, value, said.patience):
            kept[_cast(schema, value)] = None
    return list(kept)


def _named_options(options: Sequence[Any], text: str) -> list[str]:
    order = {stem: i for i, stem in reversed(list(enumerate(_stems_of(text))))}
    stemmed = {str(option): _stem(str(option).lower()) for option in options}
    return sorted((o for o, stem in stemmed.items() if stem in order), key=lambda o: order[stemmed[o]])


@lru_cache(maxsize=8)
def _stems_of(text: str) -> tuple[str, ...]:
    return tuple(stems(text))


@lru_cache(maxsize=8)
def _ids(text: str) -> tuple[str, ...]:
    tokens = (raw.strip(".-#") for raw in re.findall(r"[^\s,;:!?()\[\]{}\"'`“”]+", text))
    return tuple(token for token in tokens if re.search(r"[\d_@-]", token))


@lru_cache(maxsize=8)
def _loose(text: str) -> tuple[str, ...]:
    # A parameter without a pattern: quoted words, else what looks like an id, else a name ("in Paris").
    quoted = [found.strip() for found in re.findall(r"[\"“]([^\"“”]+)[\"”]", text)]
    return tuple(quoted) or _ids(text) or tuple(re.findall(r"(?<=[a-z,] )[A-Z][^\W\d_]+", text))


def _schema(tool: Tool, name: str) -> Mapping[str, Any]:
    schema = tool.properties.get(name)
    return schema if isinstance(schema, dict) else {}


def _fits(schema: Mapping[str, Any], value: Any, patience: Patience) -> bool:
    text = str(value)
    if schema.get("type") in ("integer", "number"):
        return bool(re.fullmatch(r"-?\d+" if schema["type"] == "integer" else r"-?\d+(\.\d+)?", text))
    if isinstance(schema.get("enum"), list):
        patience.spend(len(schema["enum"]))
        if value not in schema["enum"]:
            return False
    return patience.fits(schema.get("pattern"), text)


def _cast(schema: Mapping[str, Any], value: Any) -> Any:
    kind = schema.get("type")
    if kind == "integer" and len(str(value)) <= LONGEST_NUMBER:
        return int(value)
    if kind == "number" and math.isfinite(float(value)):
        return float(value)
    return str(value) if kind == "string" else value


def _under(value: Any, name: str, said: Sources) -> Iterator[Any]:
    """Every plain value that stands under a key in a JSON value, in order."""
    waiting = [(False, value)]
    while waiting and said.patience.spend():
        named, found = waiting.pop()
        if named:
            yield from _plain_values(found)
        elif isinstance(found, list):
            waiting += [(False, item) for item in reversed(found)]
        elif isinstance(found, dict):
            waiting += [(key == name, item) for key, item in reversed(found.items())]


def _plain_values(value: Any) -> Iterable[Any]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, (str, int, float)) and not isinstance(item, bool)]


def _tool(definition: Mapping[str, Any]) -> Tool:
    schema = definition["input_schema"]
    properties = schema.get("properties") if isinstance(schema.get("properties"), dict) else {}
    required = [name for name in _listed(schema.get("required")) if isinstance(name, str)]
    about = str(definition.get("description") or str(definition.get("name")).replace("_", " "))
    options = [o for p in properties.values() if isinstance(p, dict) for o in _listed(p.get("enum"))]
    words = stems(_VERB.sub(" ", about)) + [_stem(str(option).lower()) for option in options]
    return Tool(str(definition.get("name")), frozenset(words), tuple(required), properties)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _stem(word: str) -> str:
    if word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return (word[:-1] + "i" if word.endswith("y") else word)[:6]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
