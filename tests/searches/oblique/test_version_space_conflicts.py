"""Conflicts: sides of few cells that no hyperplane keeps, by a linear programme of their own."""

import pytest
from every_tree import is_parted
from test_version_spaces import of_two_classes, random_problem, searched


@pytest.mark.parametrize("seed", range(6))
def test_no_hyperplane_keeps_the_sides_of_a_conflict(seed):
    random = random_problem(seed, depth=2, n_groups=16, p=3)
    problem = of_two_classes(seed, n_groups=16) if seed % 2 else random
    search, _ = searched(problem)
    table, known, seen = search.table, search._spaces[0].splits.known, 0
    for i in range(len(table.price)):
        features = tuple(table.features[i, : table.n_features[i]])
        for q in range(min(4, known.n[i, 0])):
            pairs = [(int(known.cell[i, q, r]), int(known.side[i, q, r])) for r in range(known.size[i, q])]
            assert 2 <= len(pairs) <= len(features) + 2
            left, right = ([g for g, side in pairs if side == wanted] for wanted in (0, 1))
            # Cells of several points keep those that count: fewer rows would be easier to keep.
            assert not is_parted(search.problem, features, left, right, float(table.low[-1]))
            seen += 1
    assert seen
