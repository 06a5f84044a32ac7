"""Docstrings, written for Python's tools, become Markdown for the site: formulas, roles, tables, code."""

import re

import griffe

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`(~?)(?:([^`<]*?)\s*<)?([\w.]+)>?`")
INLINE_FORMULA = re.compile(r":math:`(.*?)`", re.DOTALL)
FORMULA = re.compile(r"^( *)\.\. math::(.*(?:\n(?:\1 +.*| *$))*)", re.MULTILINE)
SEVERAL = re.compile(r"^((?:\w+, )+\w+)\n((?: {4}.*(?:\n|$))(?: {4}.*(?:\n|$)|\n(?= {4}))*)", re.MULTILINE)
TABLE = re.compile(r"^(=+(?: +=+)+)\n(.*?)\n\1\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)


def to_markdown(text):
    """Turn the reStructuredText of a docstring into Markdown."""
    text = SEVERAL.sub(_one_by_one, text)
    text = TABLE.sub(_table, text)
    text = FORMULA.sub(_formula, text)
    text = INLINE_FORMULA.sub(lambda found: f"\\({' '.join(found[1].split())}\\)", text)
    text = ROLE.sub(_reference, _indented_lists(text))
    text = text.replace("(*)", "(\\*)")  # a name of rows, no emphasis
    return re.sub(r"(\S)::$", r"\1:", text, flags=re.MULTILINE)


def _one_by_one(found):
    """Describe parameters that share a description one by one: each has a type of its own."""
    described = found[2] if found[2].endswith("\n") else f"{found[2]}\n"
    return "".join(f"{name}\n{described}" for name in found[1].split(", "))


def _formula(found):
    indent, body = found[1], found[2].strip()
    if "&" in body or "\\\\" in body:
        body = f"\\begin{{align*}} {body} \\end{{align*}}"
    body = " ".join(body.split())  # an indented line would be code
    return f"{indent}\\[{body}\\]\n"


def _indented_lists(text):
    """Indent what belongs to an item of a list by four, as Markdown wants it, not by the width of its mark."""
    lines, inside = [], False
    for line in text.splitlines():
        item = re.match(r"(?:-|\d+\.) +", line)
        if item:
            inside, missing = True, max(0, 4 - item.end())
        elif line.strip() and not line.startswith(" "):
            inside = False
        continues = inside and not item and line.strip()
        lines.append(" " * missing + line if continues else line)
    return "\n".join(lines)


def _reference(found):
    short, title, target = found[1], found[2], found[3]
    name = title or (target.rsplit(".", 1)[-1] if short else target)
    # Only full names can be found from everywhere; a missing one stays as code.
    if not target.startswith(("mipforest.", "formulations.")):
        return f"`{name}`"
    return f'<autoref identifier="{target}" optional><code>{name}</code></autoref>'


def _table(found):
    edges = [(rule.start(), rule.end()) for rule in re.finditer("=+", found[1])]
    rows = [_cells(line, edges) for line in found[2].splitlines()]
    rows.append(["---"] * len(edges))
    for line in found[3].splitlines():
        cells = _cells(line, edges)
        if cells[0]:
            rows.append(cells)
        else:  # the line before goes on
            rows[-1] = [f"{before} {more}".strip() for before, more in zip(rows[-1], cells, strict=True)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _cells(line, edges):
    """Cut a line of a simple table into its cells; the last one has no right edge, nor has one that overflows."""
    starts = [start for start, _ in edges]
    for at, start in enumerate(starts[1:], 1):
        while starts[at] > 0 and line[starts[at] - 1 : starts[at]].strip():
            starts[at] += 1  # an overlong cell pushes the next one to the right
        starts[at] = max(starts[at], start)
    ends = [*starts[1:], None]
    return [line[start:end].strip().replace("|", "\\|") for start, end in zip(starts, ends, strict=True)]


class Docstrings(griffe.Extension):
    """Rewrite every docstring as it is read."""

    def on_object(self, *, obj, **_):
        """Rewrite the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)
