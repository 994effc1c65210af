"""Counted steps: the same each time, twice as many for twice the work, and an end to work without one."""

import numpy as np
import pytest
from counting import count_elements, count_steps, growth


def test_the_same_work_has_the_same_steps():
    work = lambda: sorted([3, 1, 2], key=lambda one: -one)  # noqa: E731
    assert count_steps(work) == count_steps(work) > 3


def test_linear_and_quadratic_work_are_told_apart():
    assert growth(lambda n: [str(one) for one in range(n)], 1000) == pytest.approx(2, abs=0.1)
    assert growth(lambda n: [one + two for one in range(n) for two in range(n)], 50) == pytest.approx(4, abs=0.2)


def test_elements_are_counted_in_all_that_is_made_from_an_array():
    assert count_elements(lambda one: np.sort(one + 1), np.arange(10)) == 20
    few, many = (count_elements(lambda one: [one == k for k in range(len(one))], np.arange(n)) for n in (100, 200))
    assert (few, many) == (100**2, 200**2)


def test_work_beyond_its_budget_is_stopped_whatever_it_catches():
    def endless():
        while True:
            try:
                int("1")
            except Exception:
                return

    with pytest.raises(pytest.fail.Exception, match="more than 1,000 steps"):
        count_steps(endless, 1000)
