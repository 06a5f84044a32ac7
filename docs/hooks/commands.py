"""The command reference, from the commands themselves: a page says ``<!-- commands -->``."""

import re

from typer.main import get_command

from mipforest.cli.main import app

MARK = re.compile(r"^<!-- commands -->$", re.MULTILINE)


def on_page_markdown(markdown, **_):
    """Put the reference in the place of the mark."""
    return MARK.sub(lambda _: reference(), markdown)


def reference():
    """Give one section per command, in the order of ``mipforest --help``."""
    program = get_command(app)
    context = program.make_context("mipforest", [], resilient_parsing=True)
    names = [name for name in program.list_commands(context) if not program.commands[name].hidden]
    return "\n\n".join(_section(program.commands[name], ["mipforest", name]) for name in names)


def _section(command, path):
    context = command.make_context(" ".join(path), [], resilient_parsing=True)
    lines = [f"{'#' * len(path)} {' '.join(path)}", "", _paragraphs(command.help or ""), ""]
    if hasattr(command, "commands"):
        inner = [_section(command.commands[name], [*path, name]) for name in command.list_commands(context)]
        return "\n\n".join(["\n".join(lines), *inner])
    lines += ["```text", " ".join([*path, *command.collect_usage_pieces(context)]), "```"]
    for panel, parameters in _panels(command).items():
        lines += ["", f"| {panel} | meaning |", "|---|---|"]
        for names, meaning in (one.get_help_record(context) for one in parameters):
            meaning = _paragraphs(meaning).replace("|", "\\|")
            lines.append(f"| `{' '.join(names.split())}` | {meaning} |")
    return "\n".join(lines)


def _panels(command):
    """Give the parameters of a command by the panel in which its help shows them."""
    panels = {}
    for one in command.params:
        usual = "argument" if one.param_type_name == "argument" else "option"
        panels.setdefault(getattr(one, "rich_help_panel", None) or usual, []).append(one)
    return panels


def _paragraphs(text):
    """Keep the text of a help from meaning anything in Markdown."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return "\n\n".join(paragraphs).replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[")
