"""Numbers and lines as text."""

import struct

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mipforest.files.streams import lines, number_table, number_text


@settings(max_examples=80)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_read_back_to_the_last_bit_with_the_fewest_digits(values):
    texts = number_text(np.array(values)).tolist()
    for value, text in zip(values, texts, strict=True):
        assert struct.pack("d", float(text)) == struct.pack("d", value + 0.0)
        digits = text.split(b"E")[0].strip(b"-").replace(b".", b"").strip(b"0")
        shortest = repr(value).split("e")[0].strip("-").replace(".", "").strip("0").encode()
        assert len(digits) <= len(shortest)


def test_many_bit_patterns_read_back():
    bits = np.random.default_rng(0).integers(0, 2**63, 100_000, dtype=np.int64)
    values = bits.view(float)[np.isfinite(bits.view(float))]
    # exact: written to the last digit
    assert np.array_equal([float(text) for text in number_text(values)], values)


def test_integers_are_plain_and_each_number_is_written_once():
    table, index = number_table(np.array([1.0, -50.0, 0.25, 1.0, -0.0, 0.0, 999_999_999_999_999.0, 1e15]))
    assert table.tolist() == [b"1", b"-50", b"2.5E-1", b"0", b"999999999999999", b"1E15"]
    assert index.tolist() == [0, 1, 2, 0, 3, 3, 4, 5]


def test_no_number():
    assert number_text(np.zeros(0)).tolist() == []


def test_lines_of_constants_arrays_and_tables():
    count = 100_000
    index = np.arange(count) % 3
    table = np.array([b"a", b"bcd", b""])
    numbers = np.arange(count).astype("S6")
    text = b"".join(lines(b" ", (table, index), b"-", numbers, b"\n"))
    assert text == b"".join(b" %s-%d\n" % ((b"a", b"bcd", b"")[k % 3], k) for k in range(count))


def test_no_line():
    assert b"".join(lines(b" ", np.zeros(0, dtype="S3"), b"\n")) == b""
