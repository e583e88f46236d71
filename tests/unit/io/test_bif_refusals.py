"""What is no BIF file: every refusal with its line and column, and texts damaged at random."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lurking.errors import FormatError, LurkingError, TooLarge
from lurking.io.bif import format_bif, parse_bif

SMALL = """\
network unknown {
}
variable a {
  type discrete [ 2 ] { no, yes };
}
variable b {
  type discrete [ 3 ] { low, mid, high };
  property note = "; }" ;
}
probability ( a ) {
  table 0.25, 0.75;
}
probability ( b | a ) {
  (no) 0.5, 0.25, 0.25;
  (yes) 0.125, 0.125, 0.75; // last
}
"""


OLD = """
network "old dress" { }
variable "a b" { type discrete[2] { "true""false" }; property lurking_hidden = yes ; }
variable c { type discrete[2] { /* one */ 1 2 }; property "position = (1, 2)" ; }
variable d { type discrete[2] { 0 1 }; }
probability ( "a b" ) { table 0.1 0.9 ; }
probability ( c "a b" ) { table 0.6 0.05 0.4 0.95 ; }
probability ( d "a b" c ) { default 0.5 0.5 ; (true 1) 0.25 0.75; (false 2) 1 0; }
"""


def changed(old, new):
    """Return the text with its only `old` replaced."""
    assert SMALL.count(old) == 1
    return SMALL.replace(old, new)


def refused(text, line, column):
    """Return the one-line error, which must name this place."""
    with pytest.raises(FormatError) as caught:
        parse_bif(text, "x.bif")
    message = str(caught.value)
    assert message.startswith(f"x.bif, line {line}, column {column}: ")
    assert message.splitlines() == [message]
    return message


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "message"),
    [
        ("network unknown", "netwrok unknown", 1, 1, "'netwrok' begins no block (did you mean 'network'?)"),
        ("network unknown {", "hello\nnetwork unknown {", 1, 1, "must be a comment"),
        ("network unknown {", 'network "unknown" "x" {', 1, 19, "'x' stands where '{' is expected"),
        ("}\nvariable a", "table }\nvariable a", 2, 1, "'table' stands where 'property' or the '}' of the network"),
        ("}\nvariable a", "}\nnetwork two { }\nvariable a", 3, 1, "second network block"),
        ("variable a {", "variable { {", 3, 10, "'{' stands where the name of a variable is expected"),
        ("variable a {", "variable a", 4, 3, "'type' stands where '{' is expected"),
        ("variable a {", "variable * {", 3, 10, "'*' cannot name a variable"),
        ("variable a {", 'variable "" {', 3, 10, "'' cannot name a variable"),
        ("variable b {", "variable a {", 6, 10, "second variable 'a', the first is in line 3"),
        ("type discrete [ 2 ] { no, yes };", "", 3, 10, "variable 'a' has no type"),
        ("type discrete [ 2 ]", "tpye discrete [ 2 ]", 4, 3, "'tpye' stands where 'type', 'property' or the '}'"),
        ("discrete [ 2 ]", "continuous [ 2 ]", 4, 8, "the type 'continuous'"),
        ("discrete [ 2 ]", "discrete ( 2 )", 4, 17, "'(' stands where '[' is expected"),
        ("[ 2 ]", "[ ]", 4, 19, "']' stands where the number of levels is expected"),
        ("[ 2 ]", "[ 3 ]", 4, 19, "'a' says [ 3 ] levels and lists 2"),
        ("[ 2 ]", "[ two ]", 4, 19, "'a' says [ two ] levels and lists 2"),
        ("[ 2 ]", "[ " + "2" * 5000 + " ]", 4, 19, "levels and lists 2"),
        ("no, yes", "", 4, 23, "'a' has no levels"),
        ("no, yes", "not sure, yes", 4, 19, "a level with blanks, commas or brackets stands in double quotes"),
        ("no, yes", "no, no", 4, 29, "the level 'no' twice"),
        ("no, yes };", "no, yes }", 5, 1, "'}' stands where ';' is expected"),
        ("no, yes };", "no, yes }; type discrete [ 1 ] { x };", 4, 36, "second type of 'a'"),
        ('note = "; }"', "lurking_hidden = maybe", 8, 3, "lurking_hidden is 'maybe'; it must be yes or no"),
        ('"; }" ;', "none", 9, 1, "'}' stands where the ';' of a property is expected"),
        ('"; }" ;', '"none ;', 8, 19, "the quote that begins here is never closed"),
        ("// last", "/* last", 15, 29, "the comment that begins here is never closed"),
        ("( a )", "( c )", 10, 15, "'c' is no variable of the file"),
        ("( b | a )", "( b | aa )", 13, 19, "'aa' is no variable of the file (did you mean 'a'?)"),
        ("( b | a )", "( b | a, a )", 13, 22, "'a' is listed twice among the parents of 'b'"),
        ("( b | a )", "( b a | a )", 13, 19, "'|' stands where a parent or ')' is expected"),
        ("( b | a )", "( | a )", 13, 15, "'|' stands where the name of a variable is expected"),
        ("( b | a )", "b | a", 13, 13, "'b' stands where '(' is expected"),
        ("( b | a )", "( a )", 13, 15, "second probability block of 'a', the first is in line 10"),
        ("probability ( a ) {\n  table 0.25, 0.75;\n}", "", 3, 10, "variable 'a' has no probability block"),
        ("table 0.25, 0.75;", "", 10, 15, "the probability block of 'a' is empty"),
        ("table 0.25, 0.75;", "tabel 0.25, 0.75;", 11, 3, "'tabel' stands where 'table', 'default', '('"),
        ("table 0.25, 0.75;", "table 0.25, 0.75; table 0.5, 0.5;", 11, 21, "second table of 'a'"),
        ("table 0.25, 0.75;", "default 0.2, 0.8; default 0.5, 0.5;", 11, 21, "second default of 'a'"),
        ("table 0.25, 0.75;", "() 0.25, 0.75; table 0.2, 0.8;", 11, 18, "a table and also rows or a default"),
        ("0.25, 0.75;", "0.25, 0.75", 12, 1, "'}' stands where a probability or ';' is expected"),
        ("0.25, 0.75;", "0.25;", 11, 3, "in the table of 'a' is 1; it must be 2"),
        ("0.25, 0.75;", "0.25, 0.7;", 11, 3, "of 'a' sum to 0.95; a row must sum to 1 within 0.01"),
        ("0.25, 0.75;", "1e308, 1e308;", 11, 3, "sum to inf"),
        ("0.25, 0.75;", "0, 0;", 11, 3, "sum to 0;"),
        ("0.25, 0.75;", "-0.25, 1.25;", 11, 9, "'-0.25' is no probability; write a finite number of at least 0"),
        ("0.25, 0.75;", "0.25, nan;", 11, 15, "'nan' is no probability"),
        ("0.25, 0.75;", "0.25, 1e999;", 11, 15, "'1e999' is no probability"),
        ("0.25, 0.75;", "0.25, 0.7_5;", 11, 15, "'0.7_5' is no probability"),
        ("0.25, 0.75;", "0.25, 0.75%;", 11, 15, "'0.75%' is no probability"),
        ("0.25, 0.75;", '0.25, "0.75";', 11, 15, "'0.75' stands where a probability or ';' is expected"),
        ("(no) 0.5", "(mo) 0.5", 14, 4, "'mo' is no level of 'a' (did you mean 'no'?); its levels are: 'no', 'yes'"),
        ("(no) 0.5", "(no, low) 0.5", 14, 3, "the row names 2 levels, and 'b' has 1 parents"),
        ("(no) 0.5", "(no 0.5", 14, 22, "';' stands where a level or ')' is expected"),
        ("(no) 0.5", "(yes) 0.5", 15, 3, "second row of 'b' for ('yes'), the first is in line 14"),
        ("(no) 0.5, 0.25, 0.25;", "", 13, 15, "the probability block of 'b' has no row for ('no')"),
        ("0.125, 0.75; //", "0.75; //", 15, 3, "in the row of 'b' is 2; it must be 3, one for each state"),
        ("0.125, 0.125,", "0.125, 0.225,", 15, 3, "'b' for ('yes') sum to 1.1; a row must sum to 1"),
        ("(no) 0.5, 0.25, 0.25", "default 0.5, 0.25, 0.35", 14, 3, "'b' for ('no') sum to 1.1; a row must"),
        ("(no) 0.5, 0.25, 0.25", "default 0.5, 0.5", 14, 3, "in the default of 'b' is 2; it must be 3"),
        ("// last\n}\n", "\n", 16, 1, "the text ends where 'table', 'default', '(', 'property' or the '}'"),
    ],
)
def test_refusals_name_the_place(old, new, line, column, message):
    assert message in refused(changed(old, new), line, column)


def test_a_table_in_the_other_order_gets_the_rule():
    rows = "(no) 0.5, 0.25, 0.25;\n  (yes) 0.125, 0.125, 0.75;"
    message = refused(changed(rows, "table 0.5, 0.25, 0.25, 0.125, 0.125, 0.75;"), 14, 3)
    assert "'b' for ('no') sum to 0.875; a row must sum to 1" in message
    assert "the child slowest" in message
    message = refused(changed(rows, "table 0.5, 0.5;"), 14, 3)
    assert "in the table of 'b' is 2; it must be 6, one for each state of the child and its parents" in message


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "message"),
    [
        ("table 0.25", "table 0.2", 13, 3, r"of 'a\n\u2028b' sum to 0.95"),
        (
            "probability ( NAME ) {\n  table 0.25, 0.75;\n}",
            "",
            3,
            10,
            r"variable 'a\n\u2028b' has no probability block",
        ),
        ("variable b", "variable NAME", 7, 10, r"a second variable 'a\n\u2028b', the first is in line 3"),
        ("( b | NAME )", '( b | "a\n" )', 15, 19, r"'a\n' is no variable of the file (did you mean 'a\n\u2028b'?)"),
        ("( NAME )", "( NAME | b )", 15, 19, "cycle: a b -> b -> a b;"),
    ],
)
def test_line_ends_in_names_stay_out_of_the_message(old, new, line, column, message):
    text = SMALL.replace(" a ", " NAME ").replace(old, new).replace("NAME", '"a\n\u2028b"')
    assert message in refused(text, line, column)


def test_a_cycle_is_named_where_it_is_written():
    text = changed("( a )", "( a | b )")
    message = refused(text, 13, 19)
    assert "the edges form a cycle: a -> b -> a" in message
    assert "the edges form a cycle: a -> a" in refused(changed("( a )", "( a | a )"), 10, 19)


@pytest.mark.parametrize("text", ["", " \n", "// nothing", "network unknown { }"])
def test_no_variable_at_all(text):
    with pytest.raises(FormatError, match=r"^x\.bif holds no variable"):
        parse_bif(text, "x.bif")


@pytest.mark.parametrize("parents", [60, 3000])
def test_more_rows_than_any_memory_holds(parents):
    """With 3000 parents their number, 2^15000, even has more digits than Python converts to text."""
    names = [f"v{j}" for j in range(parents)]
    levels = f"type discrete [32] {{ {' '.join(map(str, range(32)))} }};"
    text = "".join(
        f"variable {name} {{ {levels} }} probability ({name}) {{ default 1 {'0 ' * 31}; }}\n" for name in names
    )
    text += "variable x { type discrete [2] { 0 1 }; }\nprobability (x | " + " ".join(names) + ") {\n  HERE;\n}\n"
    with pytest.raises(TooLarge, match=rf"line {parents + 3}, column 3: .*stands for 2\^{5 * parents} rows"):
        parse_bif(text.replace("HERE", "default 0.5 0.5"))
    message = refused(text.replace("HERE", "table 0.5 0.5"), parents + 3, 3)
    assert f"in the table of 'x' is 2; it must be 2^{5 * parents + 1}" in message
    message = refused(text.replace("HERE", f"({'0 ' * parents}) 0.5 0.5"), parents + 2, 14)
    assert "has no row for ('0', '0', " in message


PIECES = ["{", "}", "(", ")", "[", "]", ";", ",", "|", '"', "/*", "*/", "//", "\\", "\n", " ", "\0", "é", "-", "1e999"]
PIECES += ["nan", "0.5", "table", "default", "property", "variable", "probability", "network", "type", "a", "b", "yes"]


@settings(max_examples=1000)
@given(st.data())
def test_a_damaged_text_is_read_or_refused_with_one_line(data):
    text = data.draw(st.sampled_from([SMALL, OLD]))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        stop = min(len(text), start + data.draw(st.sampled_from([0, 0, 1, 2, 5, 30])))
        insert = data.draw(st.sampled_from(PIECES) | st.just("") | st.text(max_size=3))
        text = text[:start] + insert + text[stop:]
    try:
        network = parse_bif(text)
    except LurkingError as error:
        lines = str(error).splitlines()
    else:
        lines = ["none"]
        assert parse_bif(format_bif(network)) == network
    assert len(lines) == 1


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join) | st.text(max_size=40))
def test_any_text_is_refused_with_one_line(text):
    with pytest.raises(LurkingError) as caught:
        parse_bif(text)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("blanks", [" " * 50_000 + '"', "/* " * 50_000, "// \n" * 50_000 + "/*", '"\\' * 50_000])
def test_long_broken_texts_are_refused_without_delay(blanks):
    with pytest.raises(FormatError, match=r"never closed|begins no block"):
        parse_bif(blanks)
