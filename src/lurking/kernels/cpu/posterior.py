"""The posterior over the joint states of every row of a compiled `Program`."""

from __future__ import annotations

import numpy as np
from numba import njit

from lurking.kernels.cpu.enumeration import cells_of_row, group_rows, row_in_logs
from lurking.kernels.program import Program
from lurking.types import FloatArray


@njit(cache=True, nogil=True, error_model="numpy")
def posterior_into(program: Program, potentials: FloatArray, group: int, masses: FloatArray, log_z: FloatArray) -> None:
    """Write the posterior over joint states (rows, S) of one group and ln z of each of its rows (log domain)."""
    fixed, slots, _ = group_rows(program, group)
    cells = np.empty(program.n_factors[group], np.int64)
    for row in range(log_z.shape[0]):
        cells_of_row(program, group, slots[row], cells)
        log_z[row] = row_in_logs(program.gather, potentials, fixed, cells, masses[row])


def posterior_of_group(program: Program, potentials: FloatArray, group: int) -> tuple[FloatArray, FloatArray]:
    """Return the posterior over joint states (rows, S) of one group and ln z of each of its rows."""
    rows = int(program.row_begin[group + 1] - program.row_begin[group])
    masses, log_z = np.empty((rows, int(program.states[group]))), np.empty(rows)
    posterior_into(program, np.ascontiguousarray(potentials), group, masses, log_z)
    return masses, log_z
