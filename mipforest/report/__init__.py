"""A run as one HTML page that needs nothing else: no network, no other files, and no scripts to be read."""

from mipforest.report.content import Content, content_of
from mipforest.report.page import report_page

__all__ = ["Content", "content_of", "report_page"]
