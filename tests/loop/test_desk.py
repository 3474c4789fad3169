"""The support desk and its own clock."""

import json

import pytest

from loop.desk import TODAY, TOOLS, WAIT_MS, Desk
from loop.dispatch import ToolError


def ask(name, **params):
    """Run one tool without its wait and return its output as data."""
    return json.loads(Desk(wait=0).dispatch({"name": name, "input": params}))


def test_every_tool_is_defined_and_waits():
    """The definitions, the waits and the running tools are the same six; the waits are 40, 90 and 128 ms."""
    assert {tool["name"] for tool in TOOLS} == set(WAIT_MS)
    assert {40, 90, 128} == set(WAIT_MS.values())


def test_the_twice_charged_order():
    """The order carries two charges and its invoice only one of them."""
    charges = [c["id"] for c in ask("get_order", order_id="AB-40912")["charges"]]

    assert 2 == len(charges)
    assert ask("list_invoices", order_id="AB-40912")["invoices"][0]["charge"] in charges


def test_the_week_is_the_week_of_the_desks_own_clock():
    """Ten open invoices, and those due this week are told from TODAY, not from the calendar outside."""
    answer = ask("list_open_invoices")
    due = [row["invoice_id"] for row in answer["invoices"] if row["due"] < "2026-12-07"]

    assert str(TODAY) == answer["today"]
    assert 10 == len(answer["invoices"])
    assert answer["summary"].removeprefix("due this week: ").split(", ") == due


def test_the_order_that_may_be_returned_takes_three_independent_lookups():
    """Customer, parcel and house rule: none of the three needs another's answer."""
    assert "4471" in ask("search_orders", customer_id="cus_8123")["summary"]
    assert "delivered" in ask("get_shipment", order_id="4471")["summary"]
    assert "30 days" in ask("lookup_policy", topic="returns")["summary"]


@pytest.mark.parametrize(("name", "params"), [("get_order", {"order_id": "0000"}), ("no_such_tool", {})])
def test_what_is_not_there_is_said_to_the_model(name, params):
    """An unknown order or tool is a ToolError, whose text is meant for the model."""
    with pytest.raises(ToolError):
        ask(name, **params)


def test_the_desk_does_not_look_at_the_calendar(monkeypatch):
    """Whatever day it is outside, the desk's day is the same."""
    import datetime

    class Later(datetime.date):
        @classmethod
        def today(cls):
            return cls(2031, 1, 1)

    monkeypatch.setattr("datetime.date", Later)

    assert datetime.date(2026, 11, 30) == TODAY
    assert "2026-11-30" == ask("list_open_invoices")["today"]
