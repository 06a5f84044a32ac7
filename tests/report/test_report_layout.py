"""Pages at the widths of telephones, tablets and desks: no text is squeezed, and none reaches beyond its place."""

import pytest

WIDTHS = (390, 700, 1000, 1400)


@pytest.mark.first_cases(3)
@pytest.mark.parametrize("kind", ["classes", "values", "chances", "card", "treatment", "policy"])
def test_no_text_is_squeezed_at_any_width(request, browser, page_of, tmp_path, kind):
    path = tmp_path / "page.html"
    path.write_bytes(page_of(request.getfixturevalue(f"{kind}_run")))
    for width in WIDTHS:
        browser.open(path, width=width)
        assert browser.bad_boxes() == [], width
