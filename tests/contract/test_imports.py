"""Importing the library is cheap, has no effects, and imports go one way."""

import json
import subprocess
import sys
from pathlib import Path

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
