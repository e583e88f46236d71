"""`lurking demo`: the main job on a bundled real data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lurking.cli import output as out
from lurking.cli.compare import print_comparison
from lurking.cli.fit import print_fit
from lurking.cli.options import SeedOption
from lurking.data.datasets import carcinoma
from lurking.errors import DataError
from lurking.learn.api import fit as fit_structure
from lurking.report.profiles import check_picture, plot_profiles, save_figure
from lurking.runtime.rng import seed_sequence
from lurking.search.compare import compare as compare_structures


def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the picture.")] = Path(),
    seed: SeedOption = 0,
) -> None:
    """Do the main job on a bundled real data set."""
    seed_sequence(seed)
    path = folder / "lurking-demo.png"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot make {str(folder)!r}: {error.strerror}; choose another folder with --out") from None
    check_picture(path)
    table = carcinoma()
    out.say("Seven pathologists (A to G) judged 118 slides: carcinoma or not (Landis & Koch 1977).")
    out.say("How many kinds of slides are there? One hidden variable 'class' explains all seven judgements.")
    out.say()
    models = {f"{k} class{'es' if k > 1 else ''}": f"class[{k}] -> *" for k in range(1, 6)}
    comparison = compare_structures(models, table, scores=["vb", "cs", "bic"], seed=seed)
    print_comparison("1 to 5 classes", comparison)
    best = comparison.posterior.best
    out.say()
    out.say(f"The evidence favours {best.name} (probability {best.probability:.2f} among these five).")
    out.say()
    result = fit_structure(best.dag, table, method="vb", seed=seed)
    print_fit(result)
    save_figure(plot_profiles(result.network, "class"), str(path))
    out.say()
    out.say(f"picture: {path}")
