"""Formulas become MathML when the site is built: pages need no script and no network for them."""

import re
from html import unescape

from latex2mathml.converter import convert

#: What the extension ``arithmatex`` leaves of a formula.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(html, **_):
    """Replace the formulas of a page."""
    return FORMULA.sub(_mathml, html)


def _mathml(found):
    inline = found[2] == "("
    # The converter does not take the backslash of an underscore in text away.
    formula = convert(unescape(found[3]), display="inline" if inline else "block").replace("\\_", "_")
    # A wide formula scrolls, and must take the focus for that to be possible with keys.
    return formula if inline else formula.replace("<math ", '<math tabindex="0" ', 1)
