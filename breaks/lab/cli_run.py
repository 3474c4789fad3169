"""The command that runs one break: its options, the question, the screen, the attempt, the exit status.

Loads the SDK only once a break really runs. Does not decide a verdict.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from breaks.lab import screen

if TYPE_CHECKING:
    from breaks._break import Break
    from breaks.lab.observe import Observation
    from breaks.lab.predict import Choice, Prediction

OPTIONS: list[Callable[[Any], Any]] = [
    click.option(
        "--predict",
        type=click.Choice(["refused", "worse", "fine"]),
        help="Answer the first question here instead of at the prompt.",
    ),
    click.option(
        "--rule",
        metavar="ID",
        help="Which rule refuses it: an id such as A1, its name, or with --seed the number of the sentence.",
    ),
    click.option("--seed", type=int, help="Fix the order in which the four sentences are offered."),
    click.option("--model", default="claude-haiku-5-5", show_default=True, help="The model to ask."),
    click.option("--variant", default="", help="Run a variant of the break; `breaks list` names them."),
    click.option(
        "--via",
        type=click.Choice(["cassette", "stand-in", "live"]),
        default="cassette",
        show_default=True,
        help="The door: recorded exchanges, the stand-in in this process, or the real API (needs a key).",
    ),
    click.option(
        "--guard", is_flag=True, help="Check the list before each request; show the line it stops at."
    ),
    click.option("--plain", is_flag=True, help="Plain lines: no colour, no box characters."),
    click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout and nothing else."),
]


@dataclass(frozen=True)
class Options:
    """What was given on the command line beside the name."""

    predict: str | None
    rule: str | None
    seed: int | None
    model: str
    variant: str
    account: str | None
    via: str
    guard: bool
    plain: bool
    as_json: bool


def command_for(name: str, title: str) -> click.Command:
    """Return the command that runs the break of that name."""

    def callback(**given: Any) -> int:
        return run_break(name, Options(**given))

    command = click.command(name, help=f"Predict what comes of it, then observe: {title}.")
    for option in [_account_option(name), *reversed(OPTIONS)]:
        callback = option(callback)
    return command(callback)


def _account_option(name: str) -> Callable[[Any], Any]:
    """Offer the account kinds that the break has recordings for."""
    from breaks.lab.names import all_breaks

    kinds = list(dict.fromkeys(kind for each in all_breaks() if each.name == name for kind in each.accounts))
    kinds = kinds or ["enforced"]
    return click.option(
        "--account",
        type=click.Choice(kinds),
        help=f"The kind of account: whether it refuses a changed past. By default {kinds[0]}.",
    )


def run_break(name: str, options: Options) -> int:
    """Run a break and show what was observed; return the exit status."""
    brk = find(name, options.variant)
    _require_model(options.model)
    given = _given(options)
    seen = _play(brk, options)
    if not options.as_json:
        screen.print_sections(_before(seen), screen.is_plain(options.plain), more=True)
    seen = seen.with_prediction(_prediction(seen, options, given))
    _keep(seen)
    if options.as_json:
        screen.print_json(seen.to_json())
    else:
        from breaks.lab.page import after

        screen.print_sections(after(seen), screen.is_plain(options.plain))
    return seen.exit_status


def _before(seen: Observation) -> list[Any]:
    from breaks.lab.page import before

    return before(seen)


def find(name: str, variant: str) -> Break:
    """Return a break; a usage error names the variants there are."""
    from breaks._break import load_all

    of_name = [each for each in load_all() if each.name == name]
    for each in of_name:
        if each.variant == variant:
            return each
    known = ", ".join(each.variant for each in of_name if each.variant) or "none"
    raise click.UsageError(f"{name} has no variant {variant[:40]!r}; variants: {known}")


def _require_model(model: str) -> None:
    """Raise a usage error for what can be no model's id: it becomes part of a file name and of a request."""
    if not re.fullmatch(r"[\w.:@/-]{1,200}", model, re.ASCII):
        raise click.UsageError(f"{model[:60]!r} is no model's id")


def _given(options: Options) -> Prediction | None:
    """Return the prediction of the options, as far as it can be read before the run."""
    from breaks.lab.predict import CHOICES, Prediction, is_number, parse_rule

    word = options.predict
    if options.rule is None:
        return Prediction(word) if word else None
    if word not in (None, "refused"):
        raise click.UsageError(f"--rule names a refusal, and --predict says {word}")
    if is_number(options.rule.strip()):
        if options.seed is None:
            raise click.UsageError("--rule with a number needs --seed: the order is drawn anew for each run")
        if not 1 <= int(options.rule.strip()[:9]) <= CHOICES:
            raise click.UsageError(f"--rule: there is no sentence of that number; there are {CHOICES}")
        return Prediction("refused")
    try:
        choice = parse_rule(options.rule)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return Prediction("refused", choice.rule, choice.sentence)


def _play(brk: Break, options: Options) -> Observation:
    from breaks.lab.doors import LIVE_SECONDS, MissingKey, require_key
    from breaks.lab.run import Asked, run
    from cassettes.replay import CorruptCassette

    account = None if options.via == "live" else options.account or brk.accounts[0]
    try:
        if options.via == "live":
            require_key()
            said = f"asking the provider; an answer may take its time, {LIVE_SECONDS:.0f} seconds at the most"
            screen.complain(said)
        return run(Asked(brk, options.model, account, options.via, options.guard))
    except (MissingKey, CorruptCassette) as error:
        raise one_line(str(error)) from None


class Place(click.Path):
    """A file or folder that is named; the empty name of a variable that is not set is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty name, and take any other as click does."""
        if value == "":
            self.fail("no name is given.", param, ctx)
        return super().convert(value, param, ctx)


class OneLine(click.ClickException):
    """An error that ends the program with one line and exit status 2."""

    exit_code = 2


def one_line(message: str) -> OneLine:
    """Return such an error from a text that came from outside."""
    from breaks.lab.outline import safe

    return OneLine(safe(message))


def _prediction(seen: Observation, options: Options, given: Prediction | None) -> Prediction | None:
    from breaks.lab.predict import Prediction, ask, is_number, parse_rule

    if options.rule is not None and is_number(options.rule.strip()):
        try:
            choice = parse_rule(options.rule, _offer(seen, options.seed))
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        return Prediction("refused", choice.rule, choice.sentence)
    undecided = seen.verdict.word == "undecided"  # there is nothing to be right or wrong about
    if given is not None or undecided or not screen.can_ask(options.as_json):
        return given
    err = options.as_json
    try:
        predicted = ask(
            lambda prompt: screen.read_line(prompt, err),
            lambda line: click.echo(line, err=err),
            lambda: _offer(seen, options.seed),
        )
    except EOFError:
        raise one_line("no answer given, so nothing is shown; --predict answers without a prompt") from None
    click.echo("", err=err)
    return predicted


def _offer(seen: Observation, seed: int | None) -> list[Choice]:
    from breaks.lab.predict import choices

    return choices(seen.verdict.rule, random.randrange(1_000_000) if seed is None else seed)


def _keep(seen: Observation) -> None:
    from breaks.lab.attempts import keep, line_of

    trouble = keep(line_of(seen))
    if trouble:
        screen.complain(trouble)
