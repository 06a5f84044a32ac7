"""README, CONTRIBUTING, CHANGELOG and SECURITY stand beside the documentation; the site shows them too."""

from pathlib import Path

from mkdocs.structure.files import File

NAMES = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}


def on_files(files, config, **_):
    """Add the pages, their links rewritten."""
    root = Path(config.config_file_path).parent
    for name, page in NAMES.items():
        text = (root / name).read_text(encoding="utf-8").replace("](docs/", "](")
        for other, its_page in NAMES.items():
            text = text.replace(f"]({other})", f"]({its_page})")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown, **_):
    """Rewrite the links of other pages to these."""
    for name, page in NAMES.items():
        markdown = markdown.replace(f"](../{name}", f"]({page}")
    return markdown
