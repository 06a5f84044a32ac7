"""Tables of models, from the registry: a page says ``<!-- model: oct -->`` or ``<!-- models -->``."""

import re

from mipforest.problem.parameters import parameters_of
from mipforest.problem.registry import formulation_classes, get_formulation

ONE = re.compile(r"^<!-- model: ([\w-]+) -->$", re.MULTILINE)
ALL = re.compile(r"^<!-- models -->$", re.MULTILINE)

#: Page of each model, in docs/models.
PAGES = {
    "margot": "margot",
    "hfs-margot": "margot-features",
    "sfs-margot": "margot-features",
    "svm-leaves": "svm-leaves",
    "oct": "oct",
    "oct-h": "oct-h",
    "policy": "policy",
    "policy-h": "policy",
    "ort": "ort",
    "ort-h": "ort",
    "ort-l": "ort",
    "ort-lh": "ort",
    "poisson": "poisson",
    "survival": "survival",
    "multi": "multi",
    "quantile": "quantile",
    "loss-optimal": "loss-optimal",
    "olct": "olct",
    "budgeted-olct": "olct",
    "univariate-olct": "olct",
    "miret": "miret",
    "orct": "randomized-trees",
    "s-orct": "randomized-trees",
    "opt": "opt",
    "opt-h": "opt",
    "ors": "risk-scores",
    "ogrs": "risk-scores",
    "s-orrt": "randomized-trees",
    "s-orrt-fd": "randomized-trees",
    "opt-l": "opt",
    "opt-lh": "opt",
}


def on_page_markdown(markdown, **_):
    """Put tables in the place of the marks."""
    return ALL.sub(lambda _: all_models(), ONE.sub(lambda found: facts(found[1]), markdown))


def all_models():
    """Give one row per registered model."""
    rows = ["| model | task | what it is | source |", "|---|---|---|---|"]
    for name, cls in formulation_classes().items():
        title = f"[`{name}`]({PAGES[name]}.md)" if name in PAGES else f"`{name}`"
        rows.append(f"| {title} | {cls.task} | {cls.summary} | {cls.source} |")
    return "\n".join(rows)


def facts(name):
    """Give what the registry knows of a model: variants, starts, scaling, parameters."""
    cls = get_formulation(name)
    lines = [
        f"Task: {cls.task}. Source: {cls.source}. Scaling of the features: `{cls.scaling}`.",
        "",
        "| choice | default | others |",
        "|---|---|---|",
        _choices("variants", cls.variants),
        _choices("starts", cls.starts),
        "",
    ]
    lines += ["| parameter | type | range | default | meaning |", "|---|---|---|---|---|"]
    lines += [_row(parameter) for parameter in parameters_of(cls).values()]
    return "\n".join(lines)


def _choices(title, names):
    others = ", ".join(f"`{name}`" for name in names[1:])
    return f"| {title} | `{names[0]}` | {others} |"


def _row(parameter):
    allowed = parameter.range.replace("|", "\\|")
    return f"| `{parameter.name}` | {parameter.kind.label} | {allowed} | `{parameter.default}` | {parameter.help} |"
