"""Help: every verb and every option explains itself."""

import re

import pytest
import typer.main

import lurking as lk
from lurking.cli.app import app

COMMANDS = typer.main.get_command(app).commands
OPTIONS = [
    pytest.param(command, option, id=f"{verb} {option.name}")
    for verb, command in COMMANDS.items()
    for option in command.params
]


def words_of(text):
    return " ".join(text.split())


def test_the_verbs():
    assert list(COMMANDS) == [
        "fit",
        "score",
        "compare",
        "search",
        "predict",
        "sample",
        "calibrate",
        "reproduce",
        "demo",
    ]


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_the_command_alone_prints_help(done, words):
    outcome = done(*words)
    assert outcome.err == ""
    assert outcome.out.startswith("Usage: ")
    for verb in COMMANDS:
        assert any(line.split()[:1] == [verb] and len(line.split()) > 3 for line in outcome.out.splitlines())


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_verb_has_help(done, verb):
    outcome = done(verb, "--help")
    assert outcome.err == ""
    assert words_of(COMMANDS[verb].help) in words_of(outcome.out)
    for option in COMMANDS[verb].params:
        for name in option.opts if option.param_type_name == "option" else ():
            assert f"  {name}" in outcome.out


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_every_option_has_help(command, option):
    assert option.help
    assert option.help.strip() == option.help
    assert option.help.endswith(".")


def test_fit_does_not_promise_several_priors(done):
    assert "several" not in next(option.help for option in COMMANDS["fit"].params if option.name == "prior")


def test_the_help_names_every_score(done):
    from lurking.evidence.evaluation import score_names

    for verb in ("score", "compare"):
        out = re.findall(r"[a-z-]+", done(verb, "--help").out)
        assert [name for name in score_names() if name not in out] == []


def test_version(done):
    outcome = done("--version")
    assert outcome.out == f"lurking {lk.__version__}\n"
    assert outcome.err == ""
