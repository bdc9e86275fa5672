"""Assertions of cases show what they compared, as those of tests do."""

import pytest

pytest.register_assert_rewrite("fuzz.categories", "fuzz.tables")
