"""The server of ``mipforest explore``: its page, what it refuses, and who may ask."""

import http.client
import json
import threading
import urllib.request

import pytest
from explored import built, ended

from mipforest.edits import EditSession
from mipforest.explore import open_page
from mipforest.explore.server import MAX_BYTES, ExploreServer


@pytest.fixture
def server(explorers):
    found = ExploreServer(explorers(built()))
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def ask(server, path, body=b"{}", method="POST", **headers):
    """Status and body of an answer; a header that is ``None`` is left out."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    given = {"Host": server.host, "X-Token": server.token} | {
        k.replace("_", "-"): v for k, v in headers.items()
    }
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in ({"Content-Length": str(len(body))} | given).items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(body if method == "POST" else None)
    answer = connection.getresponse()
    found = answer.status, answer.read(), answer.headers
    connection.close()
    return found


def test_edits_are_made_and_shown(server):
    status, body, _ = ask(server, "/edit", json.dumps({"action": "forbid", "feature": "a"}).encode())
    assert status == 200
    assert [one["words"] for one in json.loads(body)["edits"]] == ["no node uses a"]
    status, body, _ = ask(server, "/edit", json.dumps({"action": "forbid", "feature": "nope"}).encode())
    assert status == 422
    assert "has no feature 'nope'" in json.loads(body)["error"]


def test_the_page_has_a_policy_and_loads_nothing_from_elsewhere(server):
    status, body, headers = ask(server, f"/?token={server.token}", method="GET")
    assert status == 200
    assert b"//" not in body.replace(b"<!DOCTYPE", b"")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    for part in ("/page.js", "/page.css"):
        assert ask(server, part, method="GET")[0] == 200


@pytest.mark.parametrize(
    ("path", "given", "status"),
    [
        ("/state", {"X_Token": None}, 403),
        ("/state", {"X_Token": "guess"}, 403),
        ("/state", {"X_Token": "gu\xebss"}, 403),
        ("/state", {"Host": "evil.example"}, 403),
        ("/state", {"Host": None}, 403),
        ("/state", {"Origin": "http://evil.example"}, 403),
        ("/state", {"Origin": "null"}, 403),
        ("/state", {"Content_Length": str(MAX_BYTES + 1)}, 413),
        ("/state", {"Content_Length": "-1"}, 413),
        ("/state", {"Content_Length": None}, 413),
        ("/../result.json", {}, 404),
        ("/nothing", {}, 404),
    ],
)
def test_who_is_no_page_of_this_server_learns_nothing(server, path, given, status):
    found, body, _ = ask(server, path, **given)
    assert found == status
    assert b"svg" not in body


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"1e999", b"[" * 50_000])
def test_what_is_no_object_is_refused(server, body):
    status, answer, _ = ask(server, "/edit", body)
    assert status in (400, 422)
    assert json.loads(answer)["error"]


def test_a_page_needs_its_token(server):
    assert ask(server, "/", method="GET")[0] == 403
    assert ask(server, "/?token=guess", method="GET")[0] == 403
    assert ask(server, "/page.html", method="GET")[0] == 404
    assert ask(server, "/../page.css", method="GET")[0] == 404
    assert ask(server, f"/?token={server.token}", method="GET", Host="localhost.evil.example")[0] == 404


def test_names_are_escaped_in_pictures(explorers):
    explorer = explorers(built(names=("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "c")))
    picture = ended(explorer)["svg"]
    assert "<script" not in picture
    assert "<img" not in picture


def test_a_session_has_a_page_in_the_background():
    page = open_page(EditSession(built(), gap=0.0))
    try:
        assert page.address in page._repr_html_()
        with urllib.request.urlopen(page.address, timeout=60) as answer:
            assert b"mipforest explore" in answer.read()
    finally:
        page.close()
    with pytest.raises(OSError):
        urllib.request.urlopen(page.address, timeout=5)
