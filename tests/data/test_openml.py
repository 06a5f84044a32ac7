"""The OpenML loader over recorded responses: scikit-learn's client runs, only the network is replaced."""

import hashlib
import io
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError, URLError

import numpy as np
import pytest

from mipforest.data import DataError, load

RECORDED = Path(__file__).parent / "recorded"
ROUTES = {
    "/api/v1/json/data/list/data_name/tiny-fruit": "list.json",
    "/api/v1/json/data/990001": "description.json",
    "/api/v1/json/data/features/990001": "features.json",
    "/api/v1/json/data/qualities/990001": "qualities.json",
    "/data/v1/download/990001/tiny-fruit.arff": "tiny-fruit.arff",
}


class Response(io.BytesIO):
    def info(self):
        return {}


@pytest.fixture(autouse=True)
def no_wait_and_own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setattr("time.sleep", lambda seconds: None)


def replace_network(monkeypatch, answer):
    asked = []

    def urlopen(request, *args, **options):
        asked.append(request.full_url)
        return answer(request.full_url)

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", urlopen)
    return asked


def recorded(url, change=lambda content: content):
    path = "/" + url.split("/", 3)[3]
    matches = [name for route, name in ROUTES.items() if path == route or path.startswith(route + "/limit")]
    if not matches:
        raise HTTPError(url, 412, "Precondition Failed", Message(), io.BytesIO(b"{}"))
    md5 = hashlib.md5((RECORDED / "tiny-fruit.arff").read_bytes()).hexdigest()
    return Response(change((RECORDED / matches[0]).read_bytes()).replace(b'"MD5"', f'"{md5}"'.encode()))


@pytest.mark.parametrize("spec", ["openml:tiny-fruit", "openml:Tiny-Fruit@1", "openml:990001"])
def test_every_way_to_name_a_data_set(monkeypatch, spec):
    replace_network(monkeypatch, recorded)
    data = load(spec)
    assert data.name == "openml:tiny-fruit@1"
    assert data.target == "class"
    assert data.classes == ("apple", "pear")
    assert data.features.labels == ("weight", "colour=green", "colour=red", "colour=yellow")
    np.testing.assert_array_equal(data.X_raw[:, 0], [150.5, 160.0, 171.25, 140.0, 155.0, 180.0])
    np.testing.assert_array_equal(data.X_raw[:, 2], [1, 0, 0, 0, 1, 0])
    np.testing.assert_array_equal(data.y, [0, 0, 1, 1, 0, 1])


def test_second_load_needs_no_network(monkeypatch):
    asked = replace_network(monkeypatch, recorded)
    first = load("openml:tiny-fruit")
    assert len(asked) == 5
    assert load("openml:tiny-fruit").sha256 == first.sha256
    assert len(asked) == 5


def test_another_target(monkeypatch):
    replace_network(monkeypatch, recorded)
    data = load("openml:tiny-fruit", target="weight")
    assert data.task == "regression"
    assert "class=pear" in data.features


def test_unknown_target(monkeypatch):
    replace_network(monkeypatch, recorded)
    with pytest.raises(DataError, match=r"wieght"):
        load("openml:tiny-fruit", target="wieght")


def test_no_default_target_names_the_columns(monkeypatch):
    replace_network(
        monkeypatch,
        lambda url: recorded(
            url, lambda content: content.replace(b'"is_target":"true"', b'"is_target":"false"')
        ),
    )
    with pytest.raises(DataError, match=r"0 default targets.*weight, colour, class"):
        load("openml:tiny-fruit")


def test_sparse_data_set_is_refused(monkeypatch):
    replace_network(
        monkeypatch,
        lambda url: recorded(
            url, lambda content: content.replace(b'"format":"ARFF"', b'"format":"Sparse_ARFF"')
        ),
    )
    with pytest.raises(DataError, match=r"Sparse"):
        load("openml:tiny-fruit")


def test_remarks_of_openml_become_notes(monkeypatch):
    replace_network(
        monkeypatch,
        lambda url: recorded(
            url, lambda content: content.replace(b'"status":"active"', b'"status":"deactivated"')
        ),
    )
    assert any("inactive" in note for note in load("openml:tiny-fruit").notes)


def test_no_network(monkeypatch):
    def unreachable(url):
        raise URLError("Name or service not known")

    replace_network(monkeypatch, unreachable)
    with pytest.raises(DataError, match=r"cannot be reached \(Name or service not known\).*\.csv"):
        load("openml:tiny-fruit")


@pytest.mark.parametrize("failure", [TimeoutError("timed out"), ConnectionResetError("reset by peer")])
def test_broken_connection(monkeypatch, failure):
    def breaks(url):
        raise failure

    replace_network(monkeypatch, breaks)
    with pytest.raises(DataError, match=r"cannot be reached"):
        load("openml:tiny-fruit")


def test_server_error(monkeypatch):
    def fails(url):
        raise HTTPError(url, 503, "Service Unavailable", Message(), io.BytesIO(b""))

    replace_network(monkeypatch, fails)
    with pytest.raises(DataError, match=r"503"):
        load("openml:tiny-fruit")


@pytest.mark.parametrize("spec", ["openml:no-such-thing", "openml:tiny-fruits@7", "openml:12345"])
def test_unknown_data_set(monkeypatch, spec):
    replace_network(monkeypatch, recorded)
    with pytest.raises(DataError, match=r"cannot be loaded.*found"):
        load(spec)


@pytest.mark.parametrize("spec", ["openml:", "openml:a@b", "openml:@2"])
def test_malformed_reference(spec):
    with pytest.raises(DataError, match=r"openml:NAME@VERSION"):
        load(spec)
