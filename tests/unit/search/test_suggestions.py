"""What names and levels of columns suggest, and what they do not."""

import pytest

import lurking as lk
from lurking.search.suggestions import answers_among, columns_by_time, suggested_option


def binary(*names):
    return {name: [0, 1] for name in names}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["w2_job", "w1_job", "w1_pay", "w2_pay"], [["w1_job", "w1_pay"], ["w2_job", "w2_pay"]]),
        (["income_t0", "age", "income_t1"], [["income_t0"], ["income_t1"]]),
        (["x_1975", "x_1971", "y_1971", "sex"], [["x_1971", "y_1971"], ["x_1975"]]),
        (["income1971", "income1972"], [["income1971"], ["income1972"]]),
        (["q1.2019", "q2.2019", "q1.2021"], [["q1.2019", "q2.2019"], ["q1.2021"]]),
        (["post_score", "pre_score", "group"], [["pre_score"], ["post_score"]]),
        (["weight before", "weight after"], [["weight before"], ["weight after"]]),
        (["bmi_baseline", "bmi_follow_up"], [["bmi_baseline"], ["bmi_follow_up"]]),
        (["pain wave 1", "pain wave 10", "pain wave 2"], [["pain wave 1"], ["pain wave 2"], ["pain wave 10"]]),
    ],
)
def test_columns_of_several_times_are_ordered(names, expected):
    assert columns_by_time(names) == expected


@pytest.mark.parametrize(
    "names",
    [
        ["a1", "a2", "a3", "b1", "b2", "b3"],  # items of two scales, or two waves: the names do not tell
        ["M1", "A1", "M2", "A2"],
        ["q1", "q2", "q3", "q4"],
        ["post_code", "pre_order", "model_2000"],
        ["t1", "t2", "t3"],
        ["postcode", "prefix", "afternoon", "present"],
        ["weight", "height", "at1", "at2"],
        ["x_1971", "y_1975"],
        ["width_10", "width_20", "part2020a"],
        ["income_t0", "income_w1"],
    ],
)
def test_other_names_have_no_order_in_time(names):
    assert columns_by_time(names) == []
    if not names[0].startswith("q"):
        assert suggested_option(binary(*names), may_invent=True) is None


def test_a_column_stands_in_one_tier_only():
    groups = columns_by_time(["w1_x", "w2_x", "x_1990", "x_1991", "y_1990", "y_1991"])
    assert groups == [["x_1990", "y_1990"], ["x_1991", "y_1991"]]


LIKERT = ["strongly agree", "agree", "neutral", "disagree", "strongly disagree"]
ZOO = binary("hair", "feathers", "eggs", "milk", "airborne", "aquatic", "predator", "toothed") | {
    "legs": [0, 2, 4, 6, 8]
}


@pytest.mark.parametrize(
    ("levels", "count"),
    [
        (binary("q1", "q2", "q3", "q4"), 4),
        (binary("Item_1", "Item_2", "Item_3a", "Item_4", "age"), 4),
        (binary("q1", "q2", "q3"), 0),
        (dict.fromkeys(("work", "pay", "boss", "hours"), LIKERT), 4),
        (dict.fromkeys(("work", "pay", "boss"), LIKERT) | binary("sex"), 0),
        ({name: [1, 2, 3, 4, 5] for name in ("work", "pay", "boss", "hours")} | binary("sex", "old"), 4),
        # Fewer than half of the columns.
        ({name: [1, 2, 3, 4, 5] for name in "abcd"} | binary("e", "f", "g", "h", "i"), 0),
        # Alleles, counts in steps, and cut columns are not answers.
        ({name: [0, 1, 2] for name in ("rs1", "rs2", "rs3", "rs4")}, 0),
        ({name: [0, 2, 4, 6] for name in "abcd"}, 0),
        ({name: ["[0, 1)", "[1, 2)", "[2, 3)", "[3, 4]"] for name in "abcd"}, 0),
        # Traits of animals and diagnoses of raters share yes and no as well.
        (ZOO, 0),
        ({name: ["no", "yes"] for name in ("hair", "feathers", "eggs", "milk")}, 0),
        ({name: ["yes", "no", "don't know"] for name in ("tax", "war", "vote", "law")}, 4),
    ],
)
def test_answers_are_known_by_their_names_or_by_a_rating_scale(levels, count):
    assert len(answers_among(levels)) == count
    assert (suggested_option(levels, may_invent=True) is None) == (count == 0)
    assert suggested_option(levels, may_invent=False) is None


def test_one_line_and_time_comes_first():
    waves = {f"q{k}.{year}": [1, 2, 3, 4, 5] for k in range(1, 5) for year in (2019, 2021)}
    text = suggested_option(waves, may_invent=True)
    assert text == (
        "the names suggest an order in time; if later columns cannot cause earlier ones, give "
        "tiers=[['q1.2019', …], ['q1.2021', …]]"
    )
    assert suggested_option(waves, may_invent=True, for_command=True) == (
        "the names suggest an order in time; if later columns cannot cause earlier ones, give "
        "--tier q1.2019,… --tier q1.2021,…"
    )
    assert suggested_option(binary("a b w1", "a b w2"), may_invent=False, for_command=True).endswith(
        "give --tier 'a b w1' --tier 'a b w2'"
    )
    assert suggested_option(dict.fromkeys(("work", "pay", "boss", "long hours"), LIKERT), may_invent=True) == (
        "4 columns such as work and pay look like answers to questions; if none of them causes another one, give "
        "indicators=True"
    )


@pytest.mark.parametrize("table", [lk.stouffer_toby(), lk.gss82(), lk.carcinoma()], ids=["toby", "gss82", "carcinoma"])
def test_the_data_sets_of_the_library_get_no_advice(table):
    levels = {name: table[name].levels for name in table.columns}
    assert suggested_option(levels, may_invent=True) is None
