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
    return "\n\n".join(_section(command, ["mipforest", name]) for name, command in program.commands.items())


def _section(command, path):
    lines = [f"{'#' * len(path)} {' '.join(path)}", "", _escaped(command.help or ""), ""]
    if hasattr(command, "commands"):
        parts = [_section(inner, [*path, name]) for name, inner in command.commands.items()]
        return "\n\n".join(["\n".join(lines), *parts])
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    usage = [*path, "[OPTIONS]", *(_argument(one) for one in arguments)]
    lines += ["```text", " ".join(usage), "```", ""]
    lines += _table("argument", arguments, _argument) if arguments else []
    for panel in dict.fromkeys(getattr(one, "rich_help_panel", None) for one in options):
        inside = [one for one in options if getattr(one, "rich_help_panel", None) == panel]
        lines += ["", *_table(panel or "option", inside, _option)]
    return "\n".join(lines)


def _table(title, parameters, name):
    rows = [f"| {title} | meaning | default |", "|---|---|---|"]
    for one in parameters:
        rows.append(f"| `{name(one)}` | {_escaped(one.help or '')} | {_default(one)} |")
    return rows


def _argument(one):
    shown = (one.metavar or one.name.upper()).strip("[]")
    return shown if one.required else f"[{shown}]"


def _option(one):
    value = "" if getattr(one, "is_flag", False) else f" {one.make_metavar(_context())}"
    return ", ".join([*one.opts, *one.secondary_opts]) + value


def _context():
    """Give a context, which typer wants for the name of a value."""
    program = get_command(app)
    return program.make_context("mipforest", [], resilient_parsing=True)


def _default(one):
    if one.required:
        return "required"
    shown = one.show_default if isinstance(one.show_default, str) else one.default
    if shown in (None, False, (), []) or one.show_default is False:
        return ""
    return f"`{getattr(shown, 'value', shown)}`"


def _escaped(text):
    """Keep the text of a help from meaning anything in a Markdown table."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return "\n\n".join(paragraphs).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
