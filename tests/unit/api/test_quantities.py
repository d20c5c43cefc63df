from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import pytest

from dray.api.quantities import BINARY_SI, DECIMAL_EXPONENT, DECIMAL_SI, InvalidQuantity, Quantity


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1.5Gi", "1536Mi"),
        ("0.1", "100m"),
        ("1000", "1k"),
        ("1024Ki", "1Mi"),
        ("1000Ki", "1000Ki"),
        ("1500e3", "1500e3"),
        ("0.5Ki", "512"),
        ("1e-10", "1e-9"),
        ("-1500m", "-1500m"),
    ],
)
def test_a_quantity_prints_with_the_largest_suffix_that_keeps_it_whole(text: str, canonical: str) -> None:
    assert str(Quantity.parse(text)) == canonical


def test_the_format_comes_from_the_suffix() -> None:
    formats = [Quantity.parse(text).format for text in ("1Gi", "1G", "1e9")]
    assert formats == [BINARY_SI, DECIMAL_SI, DECIMAL_EXPONENT]


@pytest.mark.parametrize("text", ["", "abc", "1 Gi", "1.2.3", "1Kib", "１"])
def test_text_that_is_no_number_is_refused_with_the_expected_form(text: str) -> None:
    with pytest.raises(InvalidQuantity, match="must match the regular expression"):
        Quantity.parse(text)


def test_an_unknown_suffix_is_named_as_the_problem() -> None:
    with pytest.raises(InvalidQuantity, match="suffix"):
        Quantity.parse("1ki")


def test_a_suffix_without_digits_has_no_numeric_part_when_it_is_large() -> None:
    with pytest.raises(InvalidQuantity, match="numeric part"):
        Quantity.parse("Ei")


def test_thousands_of_digits_are_refused_rather_than_computed() -> None:
    with pytest.raises(InvalidQuantity, match="longer than"):
        Quantity.parse("9" * 5000)


def test_equal_numbers_are_equal_and_hash_alike_whatever_their_spelling() -> None:
    spellings = {Quantity.parse(text) for text in ("1", "1000m", "1e0", "1.0", "1000000000n")}
    assert len(spellings) == 1


def test_order_is_that_of_the_numbers() -> None:
    texts = ["-1Ei", "-1", "0", "1n", "999m", "1", "1k", "1Ki", "1e3000", "1e2000000000", "2e2000000000"]
    backwards = [Quantity.parse(text) for text in reversed(texts)]
    assert sorted(backwards) == [Quantity.parse(text) for text in texts]


def test_a_sum_keeps_the_format_of_its_first_operand() -> None:
    total = Quantity.parse("1Gi") + Quantity.parse("1G")
    assert (str(total), total.format) == ("2073741824", BINARY_SI)


def test_a_sum_with_zero_takes_the_format_of_the_other() -> None:
    assert (Quantity.ZERO + Quantity.parse("1Gi")).format == BINARY_SI


def test_a_difference_is_exact() -> None:
    assert str(Quantity.parse("1") - Quantity.parse("1n")) == "999999999n"


def test_value_rounds_away_from_zero() -> None:
    assert Quantity.parse("1100m").value == 2
    assert Quantity.parse("-1100m").value == -2


def test_milli_value_counts_thousandths() -> None:
    assert Quantity.parse("1500u").milli_value == 2


def test_value_overflows_as_in_go() -> None:
    assert Quantity.parse("10E").value == 0
    assert Quantity.parse("12345678901234567890").value == 12345678901234567890 - (1 << 64)


def test_only_whole_numbers_of_64_bits_convert_to_int64() -> None:
    texts = ("2k", "2000m", "1Pi", "10E")
    assert [Quantity.parse(text).as_int64() for text in texts] == [2000, None, None, None]


def test_binary_amounts_stop_at_the_largest_int64() -> None:
    assert str(Quantity.parse("16Ei")) == "9223372036854775807"


def test_rounding_up_tells_whether_something_was_lost() -> None:
    rounded, exact = Quantity.parse("1500m").round_up(0)
    assert (str(rounded), exact) == ("2", False)


def test_products_tell_whether_they_stay_exact() -> None:
    assert Quantity.parse("7Ei").multiply(3)[1] is False
    assert str(Quantity.parse("1500m") * 3) == "4500m"


def test_json_numbers_keep_their_spelling() -> None:
    assert str(Quantity.parse_json("1e3")) == "1e3"
    assert str(Quantity.parse_json('" 1Ki "')) == "1Ki"
    assert Quantity.parse_json("null").is_zero


def test_escapes_in_json_strings_are_not_read() -> None:
    with pytest.raises(InvalidQuantity):
        Quantity.parse_json('"\\u0031Ki"')


def test_a_gigantic_exponent_costs_nothing() -> None:
    huge, larger = Quantity.parse("1e2000000000"), Quantity.parse("1e2000000001")
    assert huge < larger
    assert huge != larger
    assert (huge + larger) > larger
    assert (huge + Quantity.parse("1")) == huge
    assert (huge + Quantity.parse("0e-10")) == huge
    assert str(Quantity.parse("1e-2000000000")) == "1e-9"
    assert float(huge) == float("inf")
    with pytest.raises(OverflowError):
        huge.as_fraction()


def test_nano_is_the_number_in_billionths() -> None:
    assert Quantity.parse("1.5Ki").nano == 1536 * 10**9
    assert Quantity.parse("250m").as_fraction() == Fraction(1, 4)


def test_quantities_survive_pickling_and_copying() -> None:
    quantity = Quantity.parse("1E3")
    for clone in (pickle.loads(pickle.dumps(quantity)), copy.deepcopy(quantity)):
        assert (clone, str(clone), clone.format) == (quantity, "1E3", DECIMAL_EXPONENT)


def test_a_quantity_made_of_an_integer_prints_canonically() -> None:
    assert str(Quantity.of(1 << 30, BINARY_SI)) == "1Gi"
    assert str(Quantity.of(1500, scale=-3)) == "1500m"


def test_only_zero_is_false() -> None:
    assert not Quantity.parse("0Gi")
    assert Quantity.parse("1n")
