"""Importing the library is cheap, has no effects, and imports go one way."""

import json
import subprocess
import sys
from pathlib import Path

from import_cycles import SOURCE, cycles

ROOT = Path(__file__).parents[2]

PROBE = """
import json, sys
import lurking
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def probe(code=PROBE):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_import_loads_nothing_but_the_standard_library():
    """Modules that the environment loads at the start of any program do not count."""
    always = set(probe("import json, sys\nprint(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"))
    assert set(probe()) - always - sys.stdlib_module_names == {"lurking"}


def test_reading_a_table_and_drawing_a_structure_need_no_compiler():
    code = PROBE.replace(
        "import lurking\n", "import lurking\nlurking.Dag.parse('s[2] -> a b')\nlurking.Prior.bdeu(1)\n"
    )
    assert "numpy" in probe(code)
    assert not {"numba", "matplotlib", "duckdb"} & set(probe(code))


def test_every_public_name_is_there():
    code = "import json, lurking\nprint(json.dumps({n: str(getattr(lurking, n)) for n in lurking.__all__}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    names = json.loads(done.stdout)
    assert {"Dag", "Table", "Prior", "Problem", "fit", "score", "compare", "Evidence", "Network"} <= set(names)


def test_imports_go_one_way(tmp_path):
    command = [str(Path(sys.executable).parent / "lint-imports"), "--cache-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_modules_do_not_import_each_other():
    assert cycles(SOURCE) == []


def test_cycles_through_deferred_and_type_checking_imports_are_found(tmp_path):
    package = tmp_path / "made"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "a.py").write_text("def late():\n    from made import b\n")
    (package / "b.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from made.c import one\n")
    (package / "c.py").write_text("import made.a\none = 1\n")
    (package / "d.py").write_text("import made.a\n")
    assert cycles(package) == [["made.a", "made.b", "made.c"]]


def test_an_import_in_a_package_is_a_cycle_with_its_modules(tmp_path):
    package = tmp_path / "made"
    package.mkdir()
    (package / "__init__.py").write_text("from made.a import one\n")
    (package / "a.py").write_text("one = 1\n")
    assert cycles(package) == [["made", "made.a"]]
    assert cycles(package, frozenset({"made"})) == []
