"""A page on this machine on which a tree is edited by hand: ``mipforest explore``, and a link to it in a notebook."""

from __future__ import annotations

from html import escape
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mipforest.edits import EditSession


class Page:
    """A page that is served while the process runs; a notebook shows its link.

    Parameters
    ----------
    session
        The session that the page edits; nobody else uses it meanwhile.
    """

    def __init__(self, session: EditSession) -> None:
        from mipforest.explore.explorer import Explorer
        from mipforest.explore.server import ExploreServer

        self._explorer = Explorer(session)
        self._server = ExploreServer(self._explorer)
        Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """The address, with the token that nobody else knows."""
        return self._server.address

    def close(self) -> None:
        """Serve it no longer."""
        self._server.shutdown()
        self._server.server_close()
        self._explorer.close()

    def __repr__(self) -> str:
        return f"Page({self.address!r})"

    def _repr_html_(self) -> str:
        return (
            f'<a href="{escape(self.address)}" target="_blank" rel="noopener">Edit the tree on its page</a>'
        )


def open_page(session: EditSession) -> Page:
    """Serve the page of a session on this machine, in the background.

    Parameters
    ----------
    session
        The session that the page edits; nobody else uses it meanwhile.
    """
    return Page(session)
