"""What a page holds, whatever the run, and what it never lets in."""

import json
import shutil
from xml.etree import ElementTree

import pytest
from changed_runs import sealed
from parsed_page import ParsedPage

from mipforest.report import content_of, progress_section, report_page
from mipforest.runs import read_run

TAGS = """
html head meta title style script body a header p h1 h2 h3 dl dt dd div nav ul li main section span strong svg g
rect path circle text button details summary table caption thead tbody tr th td code pre figure figcaption
label input select option ol
"""
SECTIONS = {"progress", "verification", "solve", "reproduce"}
OF_TREE = {"tree", "features", "quality"}


def parsed(content):
    return ParsedPage(content)


@pytest.mark.first_cases(4)
def test_no_name_becomes_an_element_or_an_attribute(page_of, any_run):
    page = parsed(page_of(any_run))
    assert {tag for tag, _ in page.elements} <= set(TAGS.split())
    assert len(page.all("script")) == len(page.all("style")) == 1
    names = {name for _, attributes in page.elements for name in attributes}
    assert not {name for name in names if name.startswith("on") or name in ("style", "src", "action")}


def test_names_are_shown_as_they_are(page_of, classes_run):
    text = parsed(page_of(classes_run)).text
    for name in (
        "<script>alert('feature')</script>",
        "</title><img src=x onerror=alert('class')>",
        "naïve Ω",
    ):
        assert name in text


def test_the_page_links_to_nothing_but_itself(page_of, any_run):
    page = parsed(page_of(any_run))
    targets = [attributes["href"] for _, attributes in page.elements if "href" in attributes]
    identifiers = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert {target.removeprefix("#") for target in targets} <= set(identifiers)
    assert len(identifiers) == len(set(identifiers))
    (policy,) = (
        meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


@pytest.mark.first_cases(4)
def test_the_same_run_gives_the_same_bytes(page_of, any_run):
    assert report_page(content_of(read_run(any_run))) == page_of(any_run)


def test_sections_have_headings_and_links(page_of, any_run):
    page = parsed(page_of(any_run))
    found = {section["aria-labelledby"] for section in page.all("section")}
    assert found >= SECTIONS
    assert found >= OF_TREE or not (any_run / "tree.json").exists()
    assert {attributes["href"] for attributes in page.all("a")} >= {f"#{name}" for name in found}


def test_every_node_of_the_picture_is_in_the_list(page_of, deep_run):
    page = parsed(page_of(deep_run))
    nodes = [attributes["data-node"] for attributes in page.all("a", **{"class": "node"})]
    assert len(nodes) > 31
    assert {f"node-{node}" for node in nodes} == {
        attributes["id"] for attributes in page.all("li") if attributes.get("id", "").startswith("node-")
    }
    labels = [attributes["aria-label"] for attributes in page.all("g", role="img")]
    assert len(labels) == len(nodes)
    assert all(label.startswith(f"n{node}, ") for node, label in zip(nodes, labels, strict=True))


def test_a_run_without_a_tree_says_so(page_of, infeasible_run):
    page = parsed(page_of(infeasible_run))
    assert "infeasible: no tree satisfies all constraints, proven" in page.text
    assert "This run has no tree" in page.text
    assert not page.all("section", **{"aria-labelledby": "tree"})
    assert "mipforest solve --model oct" in page.text


def test_samples_that_are_gone_are_told_and_what_is_missing(page_of, deep_run, classes_run):
    text = parsed(page_of(deep_run)).text
    assert "The samples could not be loaded again" in text
    assert "missing: the confusion matrix of the test samples." in text
    assert "Training samples" in text
    assert "could not be loaded" not in parsed(page_of(classes_run)).text


def test_changed_test_samples_are_not_drawn(page_of, values_run, tmp_path):
    run = shutil.copytree(values_run, tmp_path / "run")
    result = json.loads((run / "result.json").read_text())
    result["test_data"]["sha256"] = "0" * 64
    (run / "result.json").write_text(json.dumps(result))
    sealed(run)
    text = parsed(page_of(run)).text
    assert "The test samples have changed" in text
    assert "Test samples" not in text


def test_a_regression_shows_linear_leaves_and_predictions(page_of, values_run):
    page = parsed(page_of(values_run))
    assert "Linear leaves" in page.text
    assert "Coefficients of the leaf n1" in page.text
    charts = {chart["aria-label"][:26] for chart in page.all("svg", role="img")}
    assert "Predicted over true values" in charts
    assert "Confusion matrix" not in page.text


def test_a_logistic_tree_shows_confidence_calibration_and_its_report(page_of, logistic_run):
    page = parsed(page_of(logistic_run))
    for words in (
        "Mean confidence",
        "Mean probability of that class",
        "Calibration",
        "Brier score",
        "Influence",
    ):
        assert words in page.text
    assert "Reported by olct" in page.text
    assert "Largest tangent error" in page.text


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": {"b": {"c": {"d": {"e": 1}}}}}, "1 entries"),
        ([{"level": 0, "tree": {"<i>age</i>": 0.5}}], "<i>age</i> 0.5"),
        ([[1, 2], [3]], "1, 2"),
        (list(range(500)), "and 400 more"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ({"日本": 1}, "日本"),
        (True, "yes"),
    ],
)
def test_whatever_a_formulation_reports_is_shown(page_of, classes_run, tmp_path, value, words):
    run = shutil.copytree(classes_run, tmp_path / "run")
    result = json.loads((run / "result.json").read_text())
    result |= {"reported": ["found"], "found": value}
    (run / "result.json").write_text(json.dumps(result))
    sealed(run)
    assert words in parsed(page_of(run)).text


def test_a_gap_that_was_closed_at_once_is_told_instead_of_an_empty_chart():
    def drawn(*bounds):
        events = [
            {"seconds": k, "objective": 2.0, "bound": bound, "nodes": 0} for k, bound in enumerate(bounds)
        ]
        return ElementTree.tostring(progress_section({"events": events, "seconds": 3.0}), encoding="unicode")

    assert "closed at once, 0.0 s after the start" in drawn(2.0, 2.0)
    assert "gap in percent" not in drawn(2.0)
    assert "gap in percent" in drawn(1.0, 2.0)
    assert "gap in percent" in drawn(1.0, 1.0)


def test_the_key_of_the_chart_names_only_what_was_drawn():
    events = [{"seconds": 0.1, "objective": 3.0, "bound": None, "nodes": 1}]
    written = ElementTree.tostring(progress_section({"events": events, "seconds": 1.0}), encoding="unicode")
    assert "incumbent: best tree so far" in written
    assert "Incumbent over time; at the end incumbent 3." in written
    assert "proven" not in written


def test_a_tuning_shows_its_scores_by_setting_and_the_one_chosen(page_of, levels_run):
    page = parsed(page_of(levels_run))
    (chart,) = (chart for chart in page.all("svg", role="img") if "Accuracy over" in chart["aria-label"])
    assert chart["aria-label"].startswith("Accuracy over alpha; the chosen setting is ")
    assert "6 settings, each fitted on 2 folds" in page.text
    assert "Of the others: N_min = " in page.text


def test_a_tuning_by_pruning_curves_shows_its_validation_loss_by_depth(page_of, levels_run, tmp_path):
    run = shutil.copytree(levels_run, tmp_path / "run")
    (run / "tuning.csv").write_text(
        "depth,alpha,chosen,finished,folds_done,validation_mean,validation_std,train_mean,trees,seconds\n"
        "1,0.3,False,True,4,0.35,0.05,0.5,40,0.1\n2,0.02,True,True,4,0.08,0.02,0.05,40,0.2\n"
    )
    result = json.loads((run / "result.json").read_text())
    result["tuning"] = {"method": "batch", "score": "error", "folds": 4, "fits": 8, "chosen": 1}
    (run / "result.json").write_text(json.dumps(result))
    sealed(run)
    page = parsed(page_of(run))
    (chart,) = (chart for chart in page.all("svg", role="img") if "over depth" in chart["aria-label"])
    assert chart["aria-label"] == "Error over depth; the chosen setting is 2."
    assert "2 settings, of each the pruning curves of many trees on 4 fold(s)" in page.text
    assert "Of the others" not in page.text
    assert "training: mean of the folds" not in page.text


def test_a_tuning_without_its_file_says_what_is_missing(page_of, levels_run, tmp_path):
    run = shutil.copytree(levels_run, tmp_path / "run")
    (run / "tuning.csv").unlink()
    page = parsed(page_of(run))
    assert "tuning.csv could not be read" in page.text
    assert not page.all("section", **{"aria-labelledby": "tuning"})
