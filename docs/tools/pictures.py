"""Draw the pictures of pages, and photograph pages: ``python docs/tools/pictures.py [--site FOLDER]``.

The gallery is what the command line draws for data that scikit-learn brings, with their feature names: a tree, a
partition, a score card, an ensemble, a campaign. The landing page shows its pictures inverted in the dark. With a built
site, Chromium photographs the landing page and two report pages at four widths, light and dark.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from sklearn.datasets import load_iris

from mipforest import EditSession, get_formulation, load
from mipforest.explore import open_page

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
sys.path.insert(0, str(ROOT / "tests" / "report"))

from headless_browser import Browser  # noqa: E402

#: Seconds that a page may take to show what is waited for.
PATIENCE = 60

#: Pictures of the gallery, by the file that a command below writes.
GALLERY = {
    "tree/tree.svg": "first-tree.svg",
    "partition.svg": "gallery-partition.svg",
    "card/card.svg": "gallery-card.svg",
    "vite.svg": "gallery-vite.svg",
    "charts/profile-time.svg": "gallery-campaign.svg",
    "price.svg": "price-of-recall.svg",
}

COMMANDS = (
    "solve --model oct --depth 2 --data breast_cancer --out tree",
    "report tree",
    "solve --model margot --depth 2 --data petals.csv --target versicolor --param C=100 --out petals",
    "plot petals --partition -o partition.svg",
    "solve --model ogrs --param rules=2 --data breast_cancer --out card",
    "report card",
    "vite random-forest:trees=100 --depth 2 --data iris --positive versicolor -o vite.svg",
    f"campaign {ROOT / 'campaigns' / 'demo.toml'} --results demo.sqlite",
    "campaign report demo.sqlite -o charts",
    "price --model oct --depth 2 --data breast_cancer --vary 'recall malignant' --limits 90%:100%:2% -o price.svg",
)

#: Widths of desks, a tablet and a telephone, and heights of what is photographed, in pixels.
SIZES = ((1400, 1000), (1000, 1000), (700, 900), (390, 844))

#: Colours of a photograph: a page of text needs no more, and takes a third of the bytes.
COLOURS = 64


def mipforest(command, folder):
    """Run the command line."""
    words = [sys.executable, "-m", "mipforest", *shlex.split(command)]
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def draw(folder):
    """Draw the gallery, and leave two report pages in the folder."""
    frame = load_iris(as_frame=True)
    petals = frame.data[["petal length (cm)", "petal width (cm)"]]
    petals.assign(versicolor=(frame.target == 1).map({True: "yes", False: "no"})).to_csv(
        folder / "petals.csv", index=False
    )
    for command in COMMANDS:
        mipforest(command, folder)
    for source, target in GALLERY.items():
        shutil.copy(folder / source, PICTURES / target)


def photograph(browser, page, width, height, scheme, file, part="body"):
    """Write what a window of this size shows, from the beginning of a part on."""
    browser.open(page, width=width, height=height, prefers_color_scheme=scheme)
    browser.evaluate("localStorage.clear(); 1")  # the site keeps the scheme of the first visit
    browser.open(page, width=width, height=height, prefers_color_scheme=scheme)
    browser.evaluate(f"document.querySelector({part!r}).scrollIntoView({{behavior: 'instant'}}); 1")
    browser.picture(file, whole=False)
    with Image.open(file) as picture:
        small = picture.convert("RGB").quantize(COLOURS)
    small.save(file, optimize=True)


def walk(folder):
    """Photograph the page of ``mipforest explore`` on the way that docs/edits.md tells."""
    problem = get_formulation("oct")(alpha=0.01).build(load("breast_cancer"), depth=2)
    page, browser = open_page(EditSession(problem, gap=0.0)), Browser(folder / "explore")
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    browser.open(page.address, width=1400, height=640)

    def wait(condition):
        end = time.monotonic() + PATIENCE
        while not browser.evaluate(condition):
            assert time.monotonic() < end, condition
            time.sleep(0.1)

    def press(words):
        of_words = f"(one) => one.textContent.includes({words!r})"
        browser.evaluate(f"[...document.querySelectorAll('button')].find({of_words}).click()")

    def choose_root():
        click = "new MouseEvent('click', {bubbles: true, cancelable: true})"
        browser.evaluate(f"document.querySelector('#tree a.node').dispatchEvent({click})")

    def take(number, part="header"):
        browser.evaluate(f"document.querySelector({part!r}).scrollIntoView({{behavior: 'instant'}}); 1")
        file = PICTURES / f"explore-{number}.png"
        browser.picture(file, whole=False)
        with Image.open(file) as picture:
            small = picture.convert("RGB").quantize(COLOURS)
        small.save(file, optimize=True)

    wait("document.querySelectorAll('a.node').length > 0")
    choose_root()
    take(1)
    press("Not ")
    wait(
        "document.getElementById('proof').textContent.startsWith('Proven') && !document.getElementById('beside').hidden"
    )
    browser.evaluate("document.getElementById('beside').open = true")
    choose_root()
    take(2)
    press("Which other thresholds?")
    wait("document.querySelectorAll('#answer circle').length > 1")
    take(3)
    press("List")
    wait("document.querySelectorAll('#trees td').length > 0")
    take(4, part="#measures")
    browser.close()
    page.close()


def main():
    """Draw, and photograph where a site is given."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--site", type=Path, help="folder of a built site, to photograph its landing page")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        draw(folder)
        walk(folder)
        browser = Browser(folder / "browser")
        browser.call("Emulation.setScrollbarsHidden", hidden=True)
        for scheme in ("light", "dark"):
            report = folder / "tree" / "report.html"
            photograph(
                browser, report, 840, 630, scheme, PICTURES / f"gallery-report-{scheme}.png", part="#tree"
            )
            pages = {"report-tree": report, "report-card": folder / "card" / "report.html"}
            if given.site:
                pages["landing"] = given.site.resolve() / "index.html"
            for title, page in pages.items():
                for width, height in SIZES:
                    file = PICTURES / f"screen-{title}-{width}-{scheme}.png"
                    photograph(browser, page, width, height, scheme, file)
        browser.close()


if __name__ == "__main__":
    main()
