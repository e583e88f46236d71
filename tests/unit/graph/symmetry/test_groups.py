"""Groups of numbers."""

import numpy as np

from lurking.graph.symmetry.groups import Groups


def test_joined_numbers_share_a_leader_as_in_a_graph():
    rng = np.random.default_rng(0)
    for _ in range(50):
        size = int(rng.integers(1, 12))
        groups, reached = Groups(size), np.eye(size, dtype=bool)
        for first, second in rng.integers(0, size, (int(rng.integers(0, 10)), 2)).tolist():
            assert groups.join(first, second) == (not reached[first, second])
            both = reached[first] | reached[second]
            reached[np.ix_(both, both)] = True
        leaders = [groups.leader(member) for member in range(size)]
        assert np.array_equal(np.equal.outer(leaders, leaders), reached)
