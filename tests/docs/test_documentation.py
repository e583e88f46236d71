"""The documentation does what it says: its code runs, prints what stands below it, and its links lead somewhere.

Conventions of README.md and docs/**/*.md, checked page by page in a temporary directory that holds the bundled data
as carcinoma.csv, gss82.csv and stouffer_toby.csv:

- Blocks marked ``python`` run in order in one namespace. A block marked ``text`` directly below one is its stdout.
- In blocks marked ``console`` every line ``$ lurking ...`` runs; the lines below it, up to the next ``$``, are its
  stdout (none: not compared). With ``2>&1`` stderr counts too and the command may fail; without it, it must succeed.
  ``$ echo $?`` prints the last exit code, ``$ cat FILE`` shows a file and ``$ cat > FILE <<END`` writes one.
- Blanks at the end of a line and empty lines at the end of a block do not count.
- The line ``<!-- long -->`` above a python block leaves it and its output to `make test-long`; what follows must not
  need it.

``python tests/docs/test_documentation.py PAGE...`` writes the actual output into the pages.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pytest
import typer

from lurking.cli.app import app, main
from lurking.evidence.api import score  # noqa: F401 - fills the registry of scores
from lurking.evidence.evaluation import score_names
from lurking.learn.loop import Status

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [path for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))) if path.exists()]
BUNDLED = ("carcinoma.csv", "gss82.csv", "stouffer_toby.csv")
NOT_RUN = {"pip", "make", "git", "python", "python3", "cd", "source", "mkdocs"}

FENCE = re.compile(r"^```(\w*)\s*$")
LINK = re.compile(r"\]\(([^)\s]+)\)")
LONG = "<!-- long -->"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its lines, the index of its first line, and the language directly above it."""

    language: str
    lines: tuple[str, ...]
    begin: int
    above: str
    is_long: bool = False

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def blocks_of(lines):
    """Return the fenced blocks of a page, and the lines outside of them."""
    blocks, outside, above, is_long = [], [], "", False
    position = 0
    while position < len(lines):
        opening = FENCE.match(lines[position])
        if opening is None:
            outside.append(lines[position])
            above = above if not lines[position].strip() else ""
            is_long = lines[position].strip() == LONG or (is_long and not lines[position].strip())
            position += 1
            continue
        closing = next((i for i in range(position + 1, len(lines)) if lines[i].rstrip() == "```"), None)
        assert closing is not None, f"the block in line {position + 1} is not closed"
        # What a long block prints is long too.
        is_long = is_long and (not above or opening[1] == "text")
        blocks.append(Block(opening[1], tuple(lines[position + 1 : closing]), position + 1, above, is_long))
        above = opening[1]
        position = closing + 1
    return blocks, outside


def trimmed(text):
    """Return the text without blanks at the end of lines and without empty lines at its end."""
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip("\n")


def run_python(page, block, namespace):
    """Execute a block and return what it printed; tracebacks show the line of the page."""
    code = compile("\n" * block.begin + block.text, str(page), "exec")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, namespace)
    return output.getvalue()


def run_command(arguments, with_stderr):
    """Run the command in this process; return exit code and output."""
    output, errors = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output if with_stderr else errors),
        pytest.raises(SystemExit) as leaving,
    ):
        main(arguments)
    code = leaving.value.code
    assert code == 0 or with_stderr, f"{arguments} left with {code}: {errors.getvalue()}"
    return code, output.getvalue()


def steps_of(block):
    """Return [command, lines below it] of a console block; a backslash at the end of a line continues it."""
    steps = []
    for line in block.lines:
        if steps and steps[-1][0].endswith("\\"):
            steps[-1][0] = f"{steps[-1][0][:-1].rstrip()} {line.strip()}"
        elif line.startswith("$ "):
            steps.append([line[2:], []])
        else:
            assert steps, f"a console block must begin with '$ ', not with {line!r}"
            steps[-1][1].append(line)
    return steps


def run_console(block):
    """Execute a block; yield (shown below the command, actual output or None when it is not compared)."""
    code = 0
    for command, shown in steps_of(block):
        actual = None
        if writing := re.fullmatch(r"cat > (\S+) <<END", command):
            assert shown[-1:] == ["END"], f"{command}: the last line must be END"
            Path(writing[1]).write_text("\n".join(shown[:-1]) + "\n", encoding="utf-8")
        elif command == "echo $?":
            actual = str(code)
        elif command.startswith("cat "):
            actual = Path(command[4:].strip()).read_text(encoding="utf-8")
        elif command.split()[0] == "lurking":
            with_stderr = command.endswith(" 2>&1")
            words = shlex.split(command.removesuffix(" 2>&1"))[1:]
            code, actual = run_command(words, with_stderr)
        else:
            assert command.split()[0] in NOT_RUN, f"the test does not know how to run: {command}"
        yield "\n".join(shown), actual


def outputs_of(page, with_long=True):
    """Run a page in the current directory; yield (block, what is shown, actual), long blocks only if wanted."""
    for name in BUNDLED:
        content = resources.files("lurking.data").joinpath("bundled", name).read_text(encoding="utf-8")
        Path(name).write_text(content, encoding="utf-8")
    namespace = {"__name__": "__main__"}
    printed = ""
    for block in blocks_of(page.read_text(encoding="utf-8").splitlines())[0]:
        if block.is_long and not with_long:
            continue
        if block.language == "python":
            printed = run_python(page, block, namespace)
        elif block.language == "text":
            assert block.above == "python", f"{page}, line {block.begin}: no python block directly above"
            yield block, block.text, printed
        elif block.language == "console":
            for shown, actual in run_console(block):
                if actual is not None and (shown or not actual):
                    yield block, shown, actual


def page_name(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_code_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block, shown, actual in outputs_of(page, with_long=False):
        assert trimmed(shown) == trimmed(actual), f"{page_name(page)}, block in line {block.begin}"


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if LONG in page.read_text(encoding="utf-8")], ids=page_name)
def test_long_code_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block, shown, actual in outputs_of(page):
        assert trimmed(shown) == trimmed(actual), f"{page_name(page)}, block in line {block.begin}"


def test_only_marked_blocks_and_what_they_print_are_long():
    page = f"""{LONG}

```python
print(1)
```

```text
1
```

```python
print(2)
```

{LONG}
```python
print(3)
```

words

```text
4
```
"""
    assert [block.is_long for block in blocks_of(page.splitlines())[0]] == [True, True, False, True, False]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_relative_links_lead_to_files(page):
    _, outside = blocks_of(page.read_text(encoding="utf-8").splitlines())
    for line in outside:
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:|#", target) is None:
                path = page.parent / target.partition("#")[0]
                assert path.exists(), f"{page_name(page)} links to {target}, which does not exist"


@pytest.mark.parametrize("name", score_names())
def test_every_score_has_a_page_with_an_example(name):
    page = DOCS / "scores" / f"{name}.md"
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {name}")
    assert "```python" in text
    assert f"scores/{name}.md" in (DOCS / "evidence.md").read_text(encoding="utf-8")


def verbs():
    return typer.main.get_command(app).commands


@pytest.mark.parametrize("verb", sorted(verbs()))
def test_every_verb_is_documented(verb):
    text = (DOCS / "command.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {verb}\b", text, re.MULTILINE)
    assert re.search(rf"^\$ lurking {verb}\b", text, re.MULTILINE)
    assert verbs()[verb].help


@pytest.mark.parametrize("verb", sorted(verbs()))
def test_every_option_is_documented_and_has_a_help_text(verb):
    text = (DOCS / "command.md").read_text(encoding="utf-8")
    for parameter in verbs()[verb].params:
        for word in (*parameter.opts, *parameter.secondary_opts):
            if word.startswith("-") and word != "--help":
                assert f"`{word}" in text or f"{word}`" in text, f"{verb} {word}"
                assert parameter.help, f"{verb} {word} has no help text"


def test_every_status_is_documented():
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.+?) \|", (DOCS / "fitting.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(rows) == {status.name: status.sentence for status in Status}


def test_navigation_lists_every_page_once():
    entries = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(entries) == sorted(pages)


def written_with_actual_output(page):
    """Return the text of a page with every compared output replaced by the actual one."""
    lines = page.read_text(encoding="utf-8").splitlines()
    changes = {}
    for block, shown, actual in outputs_of(page):
        known = changes.setdefault(block.begin, (block, block.text))[1]
        if block.language == "text":
            new = trimmed(actual)
        else:
            assert known.count(shown) >= 1
            new = known.replace(shown, trimmed(actual), 1) if shown else known
        changes[block.begin] = (block, new)
    for begin, (block, new) in sorted(changes.items(), reverse=True):
        lines[begin : begin + len(block.lines)] = new.splitlines()
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        path = Path(argument).resolve()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            path.write_text(written_with_actual_output(path), encoding="utf-8")
            os.chdir(ROOT)
