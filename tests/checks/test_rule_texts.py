"""What checks mean, and that each reports its own example."""

import pytest

from calibrant.checks.diagnosis import CHECKS
from calibrant.checks.rule_texts import RULES, find_rule
from calibrant.exceptions import UnknownNameError


def test_every_check_has_a_rule():
    assert [rule.code for rule in RULES] == list(CHECKS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_check_reports_the_example_of_its_rule(rule):
    assert rule.finding().title == rule.title


def test_a_rule_prints_its_sections(run):
    code, printed, _ = run("rule", "cal004")
    assert code == 0
    assert printed.startswith("CAL004: miscalibrated region")
    for title in ("What it finds", "Why it matters", "Example", "What to do"):
        assert f"\n{title}\n" in printed


def test_all_rules_are_listed_without_a_code(run):
    _, printed, _ = run("rule")
    assert [line[:6] for line in printed.splitlines()] == list(CHECKS)


def test_unknown_codes_are_named():
    with pytest.raises(UnknownNameError, match="unknown check 'CAL099'"):
        find_rule("CAL099")
