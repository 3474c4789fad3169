"""Retrying the HTTP call alone, and counting what was given up."""

import asyncio
import json
import threading
import time
from contextlib import closing
from email.utils import formatdate

import anthropic
import httpx2
import pytest

from loop import interruptions
from loop.agent import run
from loop.call import caller
from loop.dispatch import run_concurrently
from loop.interruptions import counting, interrupted
from loop.retry import FIRST_WAIT, OutOfTimeError, patient
from loop.store import Store, resume
from loop.walker import check

REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Done."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
SOON = {"retry-after-ms": "1"}
QUESTION = {"role": "user", "content": "Why?"}
USE = {"type": "tool_use", "id": "toolu_01A", "name": "look", "input": {}}
LOST = "lost"


class Provider:
    """Answers by `script`, step by step: a status and headers, or a lost connection; then with a reply."""

    def __init__(self, *script):
        self.script, self.bodies, self.keys = list(script), [], []

    def __call__(self, request):
        """Take one request and give what the script has next."""
        self.bodies.append(json.loads(request.content))
        self.keys.append(request.headers.get("x-stainless-retry-count"))
        step = self.script.pop(0) if self.script else 200
        if step == LOST:
            raise httpx2.ConnectError("no route")
        status, headers = step if isinstance(step, tuple) else (step, SOON)
        error = {"type": "error", "error": {"type": "some_error", "message": "no"}}
        return httpx2.Response(status, headers=headers, json=REPLY if status == 200 else error)

    def client(self, **how):
        """Return a patient SDK client in front of this provider."""
        http = httpx2.Client(transport=httpx2.MockTransport(self))
        plain = anthropic.Anthropic(api_key="k", base_url="http://provider.invalid", http_client=http)
        return patient(plain, **how)

    def async_client(self, **how):
        """Return the same as an async client."""
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(self))
        plain = anthropic.AsyncAnthropic(api_key="k", base_url="http://provider.invalid", http_client=http)
        return patient(plain, **how)


def ask(provider, labels=None, **how):
    """Make one call; return what came of it: a reply or the exception."""
    with counting((labels if labels is not None else []).append):
        try:
            return caller(provider.client(**how), model="m", max_tokens=1)([QUESTION])
        except Exception as error:
            return error


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_tried_again(status):
    """Limits, overload and server errors are repeated, with the very same body."""
    provider, labels = Provider(status, status), []

    assert ask(provider, labels) == REPLY
    assert provider.bodies == [provider.bodies[0]] * 3
    assert ["0", "1", "2"] == provider.keys
    assert [] == labels


def test_a_lost_connection_is_tried_again():
    """No response at all is as good a reason."""
    provider = Provider(LOST)

    assert ask(provider) == REPLY
    assert 2 == len(provider.bodies)


@pytest.mark.parametrize(
    ("status", "headers"), [(400, SOON), (400, {**SOON, "x-should-retry": "true"}), (401, SOON), (413, SOON)]
)
def test_a_refusal_is_never_repeated(status, headers):
    """A request that was refused is refused again: a 400 goes out once, whatever its headers say."""
    provider, labels = Provider((status, headers)), []

    assert ask(provider, labels).status_code == status
    assert 1 == len(provider.bodies)
    assert [] == labels


def test_the_server_decides_where_it_says_so():
    """`x-should-retry` counts for more than the status, both ways."""
    stop = Provider((529, {**SOON, "x-should-retry": "false"}))
    go = Provider((404, {**SOON, "x-should-retry": "true"}))

    assert 529 == ask(stop).status_code
    assert 1 == len(stop.bodies)
    assert ask(go) == REPLY


def test_retry_after_is_waited_for():
    """No attempt is made before the time that the provider asked for."""
    provider, begun = Provider((429, {"retry-after": "0.3"})), time.monotonic()

    assert ask(provider) == REPLY
    assert time.monotonic() - begun >= 0.3


def test_without_retry_after_the_wait_grows_and_varies(monkeypatch):
    """The SDK's own waits: longer each time, never the same twice."""
    waits = []
    monkeypatch.setattr("anthropic._base_client.time.sleep", waits.append)
    for _ in range(5):
        ask(Provider((529, {}), (529, {}), (529, {})))

    firsts, thirds = waits[0::3], waits[2::3]
    assert 15 == len(waits)
    assert max(firsts) < min(thirds)
    assert 5 == len(set(firsts))


@pytest.mark.parametrize("script", [[529] * 9, [LOST] * 9], ids=["status", "connection"])
def test_the_tries_are_bounded_and_giving_up_is_counted_once(script, monkeypatch):
    """After the last attempt the SDK's own exception comes out, and one count is written."""
    monkeypatch.setattr("anthropic._base_client.time.sleep", lambda seconds: None)
    provider, labels = Provider(*script), []

    assert isinstance(ask(provider, labels, tries=3), anthropic.APIError)
    assert 3 == len(provider.bodies)
    assert ["retry_exhausted"] == labels


@pytest.mark.parametrize(
    "after",
    [
        {"retry-after": "3600"},
        {"retry-after-ms": "3600000"},
        {"retry-after": formatdate(9e9, usegmt=True)},
        {"retry-after": formatdate(9e9, usegmt=True).replace("GMT", "+0000")},
        {"retry-after": formatdate(9e9, usegmt=True).replace("GMT", "gmt")},
        {"retry-after": formatdate(9e9, usegmt=True).replace(" GMT", "")},
        {"retry-after-ms": "soon", "retry-after": "3600"},
        {"retry-after-ms": "", "retry-after": formatdate(9e9, usegmt=True)},
    ],
    ids=["seconds", "milliseconds", "date", "zone", "small letters", "no zone", "bad one", "empty one"],
)
def test_a_wait_beyond_the_time_is_not_begun(after, monkeypatch):
    """An hour is not slept through: the error comes out at once, and is counted."""
    waits = []
    monkeypatch.setattr("anthropic._base_client.time.sleep", waits.append)
    provider, labels = Provider((429, after)), []

    assert 429 == ask(provider, labels, seconds=5).status_code
    assert [] == waits
    assert ["retry_exhausted"] == labels


def test_time_ends_the_attempts_at_a_lost_connection(monkeypatch):
    """Where the SDK would go on, the time bound speaks, with what was lost in its text."""
    monkeypatch.setattr("anthropic._base_client.time.sleep", lambda seconds: None)
    provider, labels = Provider(*[LOST] * 9), []

    error = ask(provider, labels, tries=9, seconds=2)

    assert isinstance(error, OutOfTimeError)
    assert 3 == len(provider.bodies)  # waits of up to 0.5, 1 and 2 seconds: the third would end too late
    assert ["retry_exhausted"] == labels


def test_an_odd_retry_after_is_passed_over():
    """A header that says nothing sensible does not stop the call."""
    assert ask(Provider((529, {"retry-after": "soon"}), 200), tries=2) == REPLY


ODD = ["soon", "", "nan", "-5", "1 2 3", "Mon, 99 Foo 2026 99:99:99 GMT", "Fri, 31 Dec 99999 23:59:59 GMT"]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["retry-after", "retry-after-ms"])
def test_no_header_makes_the_wait_longer_than_the_sdks_own(odd, name, monkeypatch):
    """What is reckoned with is what the SDK waits, whatever the header says."""
    waits = []
    monkeypatch.setattr("anthropic._base_client.time.sleep", waits.append)

    assert ask(Provider((529, {name: odd}), 200), seconds=5) == REPLY
    assert waits[0] <= FIRST_WAIT


@pytest.mark.parametrize("tries", [0, -1])
def test_no_try_at_all_is_no_setting(tries):
    """It is refused where it is set, in words."""
    with pytest.raises(ValueError, match=f"tries must be 1 at least, and is {tries}"):
        patient(anthropic.Anthropic(api_key="k"), tries=tries)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 529])
def test_whatever_the_sdk_would_repeat_is_counted_and_bounded(status, monkeypatch):
    """Each status that it tries again is given up at the time bound, and counted."""
    waits = []
    monkeypatch.setattr("anthropic._base_client.time.sleep", waits.append)
    provider, labels = Provider((status, {"retry-after": "3600"})), []

    assert status == ask(provider, labels, seconds=5).status_code
    assert [] == waits
    assert ["retry_exhausted"] == labels


def test_what_the_server_wants_repeated_is_bounded_as_well(monkeypatch):
    """`x-should-retry: true` on a status that means nothing to the SDK does not go past the time."""
    waits = []
    monkeypatch.setattr("anthropic._base_client.time.sleep", waits.append)
    labels = []

    assert 404 == ask(Provider((404, {"x-should-retry": "true", "retry-after": "3600"})), labels).status_code
    assert ([], ["retry_exhausted"]) == (waits, labels)
    assert 529 == ask(Provider((529, {"x-should-retry": "false", **SOON})), labels).status_code
    assert ["retry_exhausted"] == labels


def test_the_async_client_is_as_patient():
    """The same policy, by the same function."""
    provider, hopeless, labels = Provider(529, LOST), Provider(*[529] * 5), []

    async def go():
        params = {"model": "m", "max_tokens": 1, "messages": [QUESTION]}
        message = await provider.async_client().messages.create(**params)
        with counting(labels.append), pytest.raises(anthropic.APIStatusError):
            await hopeless.async_client(tries=2).messages.create(**params)
        return message.content[0].text

    assert "Done." == asyncio.run(go())
    assert 2 == len(hopeless.bodies)
    assert ["retry_exhausted"] == labels


def test_calls_side_by_side_have_a_clock_each():
    """One client in many threads: a call that begins later is not charged for the time of another."""
    provider = Provider()
    client, failed = provider.client(tries=3, seconds=0.4), []

    def one(n):
        time.sleep(0.1 * n)
        provider.script.append((529, SOON))
        try:
            caller(client, model="m", max_tokens=1)([QUESTION])
        except anthropic.APIError as error:
            failed.append(error)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [] == failed


def test_a_retry_never_touches_the_list():
    """Whatever the connection does, each turn is in the list once, and its tools have run once."""
    provider, messages, ran = Provider(529, LOST, 429, 500), [dict(QUESTION)], []
    turns = iter([{**REPLY, "content": [USE], "stop_reason": "tool_use"}, REPLY])
    ask_provider = caller(provider.client(tries=9), model="m", max_tokens=1)

    outcome = run(messages, call=lambda m: ask_provider(m) and next(turns), dispatch=ran.append)

    assert "end_turn" == outcome.ending
    assert [USE] == ran
    assert [] == check(messages)
    assert 4 == len(messages)


# -- the counters ---------------------------------------------------------------------


@pytest.fixture
def metric(monkeypatch):
    """A counter in the place of the one that OpenTelemetry would hand out; the readings are returned."""
    readings, made = [], []

    class Counter:
        def add(self, amount, attributes):
            readings.append((amount, attributes))

    class Meter:
        def create_counter(self, name, unit, description):
            made.append(name)
            return Counter()

    interruptions._counter.cache_clear()
    monkeypatch.setattr("opentelemetry.metrics.get_meter", lambda name: Meter())
    yield readings
    interruptions._counter.cache_clear()
    assert made in ([], ["agent.interruptions"])


def test_each_interruption_is_a_metric_by_its_reason(metric, monkeypatch, tmp_path):
    """Three labels on one counter, each added to where its interruption happens."""
    ask(Provider(529), tries=1)
    run_concurrently([USE], lambda call: time.sleep(5), timeout=0.01)
    with closing(Store(tmp_path / "c.db")) as store:
        store.catch_up([QUESTION, {"role": "assistant", "content": [USE]}])
        resume(store)

    assert [
        (1, {"reason": label}) for label in ("retry_exhausted", "tool_timeout", "process_restart")
    ] == metric


def test_the_counts_are_kept_in_the_store(metric, tmp_path):
    """They are there for whoever opens the file, over all its conversations."""
    for name in "ab":
        with closing(Store(tmp_path / "c.db", name)) as store, counting(store.interruptions.note):
            store.catch_up([QUESTION, {"role": "assistant", "content": [USE]}])
            run_concurrently([USE], lambda call: time.sleep(5), timeout=0.01)
            resume(store)

    with closing(Store(tmp_path / "c.db")) as store:
        assert {"tool_timeout": 2, "process_restart": 2} == store.interruptions.totals()


def test_a_run_that_gave_up_is_not_counted_as_a_restart_as_well(metric, tmp_path):
    """The three counts add up: one interruption, one label; the next one counts again."""
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_01A", "content": ""}]}
    with closing(Store(tmp_path / "c.db")) as store:
        store.catch_up([QUESTION, {"role": "assistant", "content": [USE]}, answer])
        store.interruptions.note("retry_exhausted")
        resume(store)
        assert {"retry_exhausted": 1} == store.interruptions.totals()
        resume(store)
        assert {"retry_exhausted": 1, "process_restart": 1} == store.interruptions.totals()


@pytest.mark.parametrize("last", [QUESTION, {"role": "assistant", "content": REPLY["content"]}])
def test_a_list_at_rest_was_not_interrupted(metric, tmp_path, last):
    """A question that waits or a finished turn is no restart."""
    with closing(Store(tmp_path / "c.db")) as store:
        store.catch_up([QUESTION, last] if last["role"] == "assistant" else [last])
        resume(store)
        assert {} == store.interruptions.totals()


def test_a_count_that_cannot_be_written_stops_nothing(caplog):
    """A broken sink is logged, and the late tool is answered all the same."""

    def broken(label):
        raise OSError("no room")

    with counting(broken):
        results = run_concurrently([USE], lambda call: time.sleep(5), timeout=0.01)

    assert results["toolu_01A"]["is_error"] is True
    assert "tool_timeout" in caplog.text


def test_outside_of_counting_there_is_no_sink():
    """The sink belongs to its context: afterwards, and in another thread, nothing is written to it."""
    labels = []
    with counting(labels.append):
        thread = threading.Thread(target=interrupted, args=("elsewhere",))
        thread.start()
        thread.join()
    interrupted("after")

    assert [] == labels
