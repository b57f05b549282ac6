"""What kernels refuse is one exception, of values that do not fit the model or each other."""

import numpy as np
import pytest

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.method.method import refuse_other, refuse_unless


@pytest.mark.parametrize("refuse", [lambda: refuse_unless(np.array([True, False]), "what holds"), lambda: refuse_other(1, "two", (int, float))])
def test_what_is_refused_is_a_value_in_one_line(refuse):
    """So that callers who know of values alone are told as well, and those who know it can tell it from all other errors."""
    with pytest.raises(InvalidParameters) as refused:
        refuse()
    assert isinstance(refused.value, ValueError)
    assert len(str(refused.value).splitlines()) == 1
