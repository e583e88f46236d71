"""The posterior over everything that a table leaves unobserved, and expected counts of any variables under it.

Given what a row observes, its unobserved cells fall into components that are independent of each other. The posterior
of a row is one table over the joint states of each component, so the counts of any set of variables, also of one that
no clique of the structure holds, are sums of products of margins. Where hidden variables join much to one component, a
few of them are the *context*: components are those given its states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lurking.errors import TooLarge
from lurking.inference.engines.components import Splitter, bits, kept_nodes
from lurking.models.layout import Layout
from lurking.runtime.memory import count_in_words, in_words, is_affordable
from lurking.types import BoolArray, CodeArray, FloatArray, IntArray

MOST_STATES = 1 << 24
"""Joint states of one component at most."""
DENSE_CELLS = 1 << 16
"""Cells of a table of counts up to which it is dense whatever the number of rows."""
DENSE_CELLS_PER_ROW = 4
SMALL_PER_ROW = 64
"""Numbers per row up to which the tables need no context."""


class Completion:
    """q(unobserved | row) of every unique row, with q(h) ∝ exp Σ_j φ_j over the families of one structure.

    Parameters
    ----------
    layout : the structure that the posterior comes from, over all variables.
    potentials : (P,) φ: ln θ, or E[ln θ].
    means : (P,) ln of normalised tables. They stand for φ where a node is unobserved without observed descendant and
        the fit left it out (`prune`): the rest of the row then has the posterior that the fit has. For EM the two are
        the same.
    codes : (u, nodes), −1 where unobserved; weights (u,).
    prune : whether the fit left out such nodes.
    context : nodes that no row observes. The posterior is held as that of their joint states, and given each of these
        as one table for every component of the rest: a hidden variable that joins many empty cells to one large
        component leaves small ones behind. None lets the sizes decide.
    """

    def __init__(
        self,
        layout: Layout,
        potentials: FloatArray,
        means: FloatArray,
        codes: CodeArray,
        weights: FloatArray,
        prune: bool,
        context: Sequence[int] | None = None,
    ) -> None:
        self.layout = layout
        self.codes: CodeArray = np.ascontiguousarray(codes.T)
        self.weights: FloatArray = np.ascontiguousarray(weights)
        self._sizes: IntArray = np.asarray(layout.cardinalities, np.int64)
        self._log_sizes = np.log2(self._sizes)
        self._instance_of = np.full(self.codes.shape, -1, np.int32)
        self._digits_at = np.zeros(self.codes.shape, np.int64)
        if context is None:
            self.context, groups = _chosen_context(layout, codes)
        else:
            self.context, groups = tuple(context), _components(layout, codes, context)
        states = _digits(self._sizes[list(self.context)])
        self._context_states = np.full((len(self._sizes), states.shape[1]), -1, np.int32)
        self._context_states[list(self.context)] = states
        self._open: BoolArray = (self.codes < 0) & (self._context_states[:, :1] < 0)
        self._check(groups, states.shape[1])
        self._place(groups, states.shape[1])
        given = codes.copy()
        log_context = np.empty((len(codes), states.shape[1]))
        kept = kept_nodes(layout, codes, prune)
        for k, row in enumerate(states.T):
            given[:, list(self.context)] = row
            log_context[:, k] = self._fill(groups, k, given, kept, potentials, means)
        shares = np.exp(log_context - log_context.max(axis=1, keepdims=True))
        self._context: FloatArray = shares / shares.sum(axis=1, keepdims=True)

    def _place(self, groups: dict[int, IntArray], n_contexts: int) -> None:
        """Give every component of every row its place in `_tables`, and every variable its states in `_digits`."""
        begin, n_states, digits = [], [], []
        n_instances = n_entries = n_digits = 0
        for mask, rows in groups.items():
            variables = list(bits(mask))
            own = _digits(self._sizes[variables])
            width = own.shape[1]
            begin.append(n_entries + n_contexts * width * np.arange(len(rows)))
            n_states.append(np.full(len(rows), width))
            for k, variable in enumerate(variables):
                self._instance_of[variable, rows] = np.arange(n_instances, n_instances + len(rows))
                self._digits_at[variable, rows] = n_digits + k * width
            digits.append(own.ravel())
            n_instances += len(rows)
            n_entries += n_contexts * width * len(rows)
            n_digits += own.size
        self._begin: IntArray = np.concatenate([np.empty(0, np.int64), *begin])
        self._n_states: IntArray = np.concatenate([np.empty(0, np.int64), *n_states])
        self._digits: CodeArray = np.concatenate([np.empty(0, np.int32), *digits])
        self._tables: FloatArray = np.empty(n_entries)

    def _fill(
        self,
        groups: dict[int, IntArray],
        state: int,
        codes: CodeArray,
        kept: BoolArray,
        potentials: FloatArray,
        means: FloatArray,
    ) -> FloatArray:
        """Fill in the tables of one joint state of the context, `codes` (u, nodes) having it, and return ln z (u,)."""
        layout = self.layout
        log_z = np.zeros(len(codes))
        everything = np.arange(len(codes))
        for j, strides in enumerate(layout.strides if self.context else ()):
            whole = everything[(codes[:, list(strides)] >= 0).all(axis=1)]
            places = layout.positions(j, codes, whole)
            log_z[whole] += np.where(kept[whole, j], potentials[places], means[places])
        for mask, rows in groups.items():
            variables = list(bits(mask))
            digits = _digits(self._sizes[variables])
            width = digits.shape[1]
            values = _log_weights(layout, variables, digits, codes, rows, kept, potentials, means)
            top = values.max(axis=1, keepdims=True)
            values = np.exp(values - top)
            totals = values.sum(axis=1, keepdims=True)
            begin = self._begin[self._instance_of[variables[0], rows]] + state * width
            self._tables[begin[:, None] + np.arange(width)] = values / totals
            log_z[rows] += (top + np.log(totals)).ravel()
        return log_z

    def _check(self, groups: dict[int, IntArray], n_contexts: int) -> None:
        """Refuse components whose tables cannot be held."""
        need = 8.0 * n_contexts * len(self.weights)
        for mask, rows in groups.items():
            variables = list(bits(mask))
            width = math.prod(int(self._sizes[v]) for v in variables)
            if width > MOST_STATES:
                raise TooLarge(
                    f"a row leaves {len(variables)} variables open that depend on each other, "
                    f"{count_in_words(width)} joint states, and at most {MOST_STATES} can be held; "
                    "use fewer arrows, fewer hidden states, or leave out rows with many empty cells"
                )
            need += width * (8.0 * len(rows) * n_contexts + 32.0 * len(variables))
        if not is_affordable(need):
            raise TooLarge(
                f"the posterior over what the rows leave open needs {in_words(need)}; use fewer arrows, fewer hidden "
                "states, or leave out rows with many empty cells"
            )

    def table(self, scope: Sequence[int]) -> FloatArray:
        """Return the whole table of expected counts N (configurations, r) of the last variable given the others."""
        return self.counts(scope, always_whole=True)[0]

    def counts(self, scope: Sequence[int], *, always_whole: bool = False) -> tuple[FloatArray, int]:
        """Return expected counts N (rows, r) of the last variable given the others, and how many rows are left out.

        Row-major over the other variables, first one slowest. Of a table much larger than the number of entries only
        the rows that occur are returned, in ascending order, and the number of the others, which are 0.
        """
        from lurking.kernels.cpu.completion import expected_counts_into

        variables = np.asarray(scope, np.int64)
        sizes = self._sizes[variables]
        cells = math.prod(sizes.tolist())
        if cells >= 2**62:
            raise TooLarge(f"{len(scope)} variables have {count_in_words(cells)} joint states; set max_parents")
        strides = np.append(np.cumprod(sizes[:0:-1])[::-1], 1).astype(np.int64)
        spans = self._log_sizes[variables] @ self._open[variables]
        most = round(2.0 ** float(spans.max(initial=0.0)))
        is_dense = always_whole or cells <= max(DENSE_CELLS, DENSE_CELLS_PER_ROW * len(self.weights))
        n_entries = 0 if is_dense else int(np.rint(np.exp2(spans)).sum()) * self._context.shape[1]
        numbers: IntArray = np.empty(n_entries, np.int64)
        counts = np.zeros(cells if is_dense else n_entries)
        if len(self.weights):
            n_entries = expected_counts_into(
                self.codes, self.weights, self._instance_of, self._digits_at, self._begin, self._n_states,
                self._tables, self._digits, self._context, self._context_states, variables, sizes, strides, most,
                numbers, counts,
            )  # fmt: skip
        width = int(sizes[-1])
        if is_dense:
            return counts.reshape(-1, width), 0
        numbers, counts = numbers[:n_entries], counts[:n_entries]
        occurring, place = np.unique(numbers // width, return_inverse=True)
        flat = place.ravel() * width + numbers % width
        found = np.zeros(len(occurring) * width)
        np.add.at(found, flat, counts)
        return found.reshape(-1, width), cells // width - len(occurring)


def _chosen_context(layout: Layout, codes: CodeArray) -> tuple[tuple[int, ...], dict[int, IntArray]]:
    """Return the context that makes the tables small, and the components given it.

    Hidden variables join it one by one, each time the one that leaves least to be held, while that halves it at least.
    """
    context: tuple[int, ...] = ()
    groups = _components(layout, codes, context)
    held = _entries(layout, groups, context)
    waiting = [layout.index[name] for name in layout.dag.hidden if layout.cardinalities[layout.index[name]] > 1]
    while waiting and held > SMALL_PER_ROW * len(codes):
        tried = [(variable, _components(layout, codes, (*context, variable))) for variable in waiting]
        sizes = [_entries(layout, parts, (*context, variable)) for variable, parts in tried]
        best = int(np.argmin(sizes))
        if 2 * sizes[best] > held:
            break
        (variable, groups), held = tried[best], sizes[best]
        context = (*context, variable)
        waiting.remove(variable)
    return context, groups


def _entries(layout: Layout, groups: dict[int, IntArray], context: tuple[int, ...]) -> int:
    """Return how many numbers the tables of all components have."""
    sizes = layout.cardinalities
    one = sum(len(rows) * math.prod(sizes[v] for v in bits(mask)) for mask, rows in groups.items())
    return one * math.prod(sizes[v] for v in context)


def _components(layout: Layout, codes: CodeArray, context: Sequence[int]) -> dict[int, IntArray]:
    """Return {bit mask of the variables of a component: rows that leave exactly it open}, given the context."""
    unobserved = codes < 0
    unobserved[:, list(context)] = False
    packed = np.packbits(unobserved, axis=1)
    _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    splitter = Splitter(layout, prune=False)
    order = np.argsort(inverse.ravel(), kind="stable")
    bounds = np.searchsorted(inverse.ravel()[order], np.arange(len(first) + 1))
    groups: dict[int, list[IntArray]] = {}
    for k, row in enumerate(first):
        mask = sum(1 << int(j) for j in np.flatnonzero(unobserved[row]))
        if mask:
            rows = order[bounds[k] : bounds[k + 1]]
            for component in splitter.split(mask).components:
                groups.setdefault(sum(1 << v for v in component.variables), []).append(rows)
    return {mask: np.concatenate(rows) for mask, rows in groups.items()}


def _digits(sizes: IntArray) -> CodeArray:
    """Return the state of each variable in every joint state, (variables, states), last variable fastest."""
    if not len(sizes):
        return np.empty((0, 1), np.int32)
    return np.indices(tuple(sizes.tolist()), np.int32).reshape(len(sizes), -1)


def _log_weights(
    layout: Layout,
    variables: Sequence[int],
    digits: CodeArray,
    codes: CodeArray,
    rows: IntArray,
    kept: BoolArray,
    potentials: FloatArray,
    means: FloatArray,
) -> FloatArray:
    """Return Σ of the potentials that touch a component, (rows, joint states)."""
    result = np.zeros((len(rows), digits.shape[1]))
    for j, strides in enumerate(layout.strides):
        if not strides.keys() & set(variables):
            continue
        moved = np.zeros(digits.shape[1], np.int64)
        for k, variable in enumerate(variables):
            moved += strides.get(variable, 0) * digits[k].astype(np.int64)
        places = layout.positions(j, codes, rows)[:, None] + moved
        result += np.where(kept[rows, j][:, None], potentials[places], means[places])
    return result
