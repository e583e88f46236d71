"""The picture shows the difference of the two structures, and says which side is whose."""

from dataclasses import replace

import numpy as np
import pytest

import lurking as lk
from lurking.errors import OptionError

MODELS = {"two": "class[2] -> *", "one": "class[1] -> *", "three": "class[3] -> *"}


@pytest.fixture(scope="module")
def result():
    return lk.prequential(MODELS, lk.stouffer_toby(), checkpoints=3, shuffle=True, restarts=2)


def line_of(axes):
    return axes.lines[-1].get_xydata() if len(axes.lines[-1].get_xdata()) > 2 else axes.lines[1].get_xydata()


def test_the_best_two_are_drawn(result):
    axes = lk.plot_prequential(result)
    first, second = result.ranked()[:2]
    assert line_of(axes) == pytest.approx(np.column_stack([result.rows, result.difference(first, second)]))
    texts = [text.get_text() for text in axes.texts]
    assert f"above 0: for {first}" in texts
    assert f"below 0: for {second}" in texts
    assert "random order" in axes.get_xlabel()
    assert "bounds" in axes.get_ylabel()


def test_two_of_choice(result):
    axes = lk.plot_prequential(result, "one", "three")
    assert line_of(axes)[:, 1] == pytest.approx(result.difference("one", "three"))


def test_an_error_that_is_not_known_has_no_bar(result, tmp_path):
    errors = np.zeros_like(result.std_errors)
    errors[0, 1:] = [0.5, *[np.inf] * (errors.shape[1] - 2)]
    axes = lk.plot_prequential(replace(result, std_errors=errors), "two", "one")
    bars = [bar for bar in axes.containers[0].lines[2][0].get_segments() if np.isfinite(bar).all() and len(bar) == 2]
    assert [float(np.ptp(bar[:, 1])) for bar in bars] == pytest.approx([0.0, 1.0])
    axes.figure.savefig(tmp_path / "picture.png")
    assert np.isfinite(axes.get_ylim()).all()


def test_one_structure_is_no_picture():
    alone = lk.prequential(["class[2] -> *"], lk.stouffer_toby(), checkpoints=1, restarts=1)
    with pytest.raises(OptionError, match="only one"):
        lk.plot_prequential(alone)
