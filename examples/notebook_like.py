"""A margin optimal tree as a scikit-learn estimator: fit with progress, picture, grid search over two processes.

The cells run in a notebook (``# %%``) or as a script: ``python examples/notebook_like.py [PICTURE]``, about a
minute on two idle cores. The picture is ``margot.svg`` unless another .svg, .png or .pdf file is named.
"""

# %% Data: 569 tumours, 30 measurements, two classes.
import sys
from time import perf_counter

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split

from mipforest import MargotClassifier
from mipforest.trees import save_figure


# %% The script's cells are a function, so that the processes of the search can import this file.
def main(picture: str = "margot.svg") -> None:
    """Run all cells."""
    cancer = load_breast_cancer(as_frame=True)
    y = cancer.target.map({0: "malignant", 1: "benign"})
    X, X_test, y, y_test = train_test_split(cancer.data, y, test_size=0.25, random_state=0, stratify=y)

    # %% Fit. A line is printed whenever the incumbent or the bound moves.
    began = perf_counter()
    margot = MargotClassifier(depth=2, time_limit=15, verbose=1).fit(X, y)
    print(
        f"\nfitted in {perf_counter() - began:.1f} s, status {margot.status_}, verified: {margot.verified_}"
    )
    print(f"objective {margot.objective_:.4f}, bound {margot.bound_:.4f}, gap {margot.gap_:.1%}")
    print(
        f"accuracy {margot.score(X, y):.3f} in training, {margot.score(X_test, y_test):.3f} on the test part"
    )

    # %% Look at it.
    print("\n" + margot.to_text(X, y, max_terms=3))
    save_figure(margot.plot(X, y), picture)
    print(f"\npicture: {picture}")

    # %% Which penalty, and are two features per node enough? Two processes, one thread each.
    began = perf_counter()
    search = GridSearchCV(
        MargotClassifier(depth=2, time_limit=2, threads=1),
        {"C": [1.0, 10.0], "feature_selection": [None, "hard"]},
        cv=2,
        n_jobs=2,
    ).fit(X, y)
    best = search.best_estimator_
    print(f"\nsearched in {perf_counter() - began:.1f} s")
    for settings, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        print(f"  {settings}: {score:.3f}")
    print(f"best {search.best_params_}: {search.score(X_test, y_test):.3f} on the test part")
    print(
        f"it uses {best.n_features_used_} of {best.n_features_in_} features: {', '.join(best.features_used_)}"
    )


# %%
if __name__ == "__main__":
    main(*sys.argv[1:])
