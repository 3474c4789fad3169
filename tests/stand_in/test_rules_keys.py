"""The tables of keys, beside the types of the installed SDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Required, get_args, get_origin

import pytest
from anthropic.types import anthropic_beta_param, beta
from anthropic.types.beta import message_create_params
from typing_extensions import get_type_hints

from cassettes.stand_in import keys
from cassettes.stand_in.keys import Keys


def typed_dicts(union: Any) -> Iterator[Any]:
    """The TypedDicts of a union, however deep."""
    if not get_args(union):
        if isinstance(union, type) and hasattr(union, "__total__"):
            yield union
        return
    for member in get_args(union):
        yield from typed_dicts(member)


def keys_of(typed_dict: Any) -> Keys:
    """The required and the optional keys of a TypedDict of the SDK."""
    hints = get_type_hints(typed_dict, include_extras=True)
    required = [k for k, v in hints.items() if get_origin(v) is Required or k in typed_dict.__required_keys__]
    return Keys(tuple(required), tuple(k for k in hints if k not in required))


def tags_of(typed_dict: Any) -> tuple[str, ...]:
    """The values of its `type`."""
    return tuple(tag for tag in get_args(get_type_hints(typed_dict).get("type")) if isinstance(tag, str))


def by_tag(union: Any) -> dict[str, Keys]:
    """The keys of a union's members by their type."""
    return {tag: keys_of(member) for member in typed_dicts(union) for tag in tags_of(member)}


def same(ours: Keys, theirs: Keys) -> bool:
    """Equal but for the order."""
    return set(ours.required) == set(theirs.required) and ours.known == theirs.known


@pytest.mark.parametrize(
    ("ours", "union"),
    [
        (keys.BLOCKS, beta.BetaContentBlockParam),
        (keys.THINKING, beta.BetaThinkingConfigParam),
        (keys.TOOL_CHOICE, beta.BetaToolChoiceParam),
        ({"ephemeral": keys.CACHE_CONTROL}, beta.BetaCacheControlEphemeralParam | None),
    ],
)
def test_tables_are_the_sdks(ours: dict[str, Keys], union: Any) -> None:
    """Each type of the SDK is in the table with its keys, and the table has no other."""
    theirs = by_tag(union)
    assert set(ours) == set(theirs)
    assert [tag for tag in ours if not same(ours[tag], theirs[tag])] == []


def test_top_level_keys() -> None:
    """The parameters of `messages.create`, less those that travel as headers."""
    theirs = keys_of(message_create_params.MessageCreateParamsNonStreaming)
    assert keys.TOP.known == theirs.known - {"betas"}
    assert not keys.TOP.known & keys.EXTRA


def test_custom_tools_and_system_messages() -> None:
    """A custom tool and a system message have the SDK's keys."""
    assert same(keys.CUSTOM_TOOL, keys_of(beta.BetaToolParam))
    assert same(keys.SYSTEM_MESSAGE, keys_of(beta.beta_system_message_param.BetaSystemMessageParam))


def test_beta_values() -> None:
    """Every beta value of the SDK is known."""
    theirs = {value for part in get_args(anthropic_beta_param.AnthropicBetaParam) for value in get_args(part)}
    assert {value for value in theirs if isinstance(value, str)} <= keys.KNOWN_BETAS
