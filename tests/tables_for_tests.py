"""Tables of many cases in one test: to collect and report a test costs several times what a row does."""

import functools
import traceback

import pytest


def each(rows):
    """In the place of `pytest.mark.parametrize`: the test is called with each row, and names all for which it fails.

    Args:
        rows: of tuples, one value for each of the test's arguments; or, for a test of one argument, its values.
    """
    rows = [row if isinstance(row, tuple) else (row,) for row in rows]
    assert rows, "a table without rows proves nothing"

    def over(check):
        def over_all():
            wrong = [text for text in (_failure(check, row) for row in rows) if text]
            if wrong:
                pytest.fail(f"{len(wrong)} of {len(rows)} rows:\n\n" + "\n".join(wrong), pytrace=False)

        functools.update_wrapper(over_all, check)
        del over_all.__wrapped__  # whose arguments pytest would take for fixtures
        return over_all

    return over


def _failure(check, row):
    """What a row is and how its check ended; "" if it passed."""
    try:
        check(*row)
    except AssertionError as error:
        return f"{', '.join(map(repr, row))}\n    {error}\n"
    except Exception as error:
        return f"{', '.join(map(repr, row))}\n{''.join(traceback.format_exception(error))}"
    return ""
