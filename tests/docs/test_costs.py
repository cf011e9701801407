"""What a run of the tests cost is told beside what it may cost."""

from costs import calibrate, told

FILES = {"tests/core/test_keys.py": 3.0, "tests/core/test_ids.py": 1.0, "tests/web/test_rpc.py": 8.0}


def test_folders_and_files_are_told_as_multiples_of_the_calibration() -> None:
    lines = told(FILES, elapsed=6.0, budget={"core": 9, "web": 15, "whole": 10}, unit=0.5)
    numbers = {(words := line.split())[0]: words[1:] for line in lines if line.startswith("  ")}
    assert numbers["core"] == ["4.0", "s", "8.0", "of", "9.0"]
    assert numbers["web"] == ["8.0", "s", "16.0", "of", "15.0", "OVER"]
    assert numbers["tests/core/test_keys.py"] == ["3.0", "s", "6.0"]
    assert [line.split()[0] for line in lines if "tests/" in line][:1] == ["tests/web/test_rpc.py"]
    assert lines[-2].split()[-6:] == ["6.0", "s", "12.0", "of", "10.0", "OVER"]
    assert lines[-1] == "Over the budget of tests/budget.toml: web, all of it, as the clock on the wall has it"


def test_a_folder_without_a_budget_is_over_it() -> None:
    assert told(FILES, 1.0, {"core": 9, "whole": 10}, 1.0)[-1].endswith("budget.toml: web")


def test_nothing_is_said_of_a_budget_that_is_kept() -> None:
    assert "OVER" not in " ".join(told(FILES, 1.0, {"core": 9, "web": 9, "whole": 10}, 1.0))


def test_the_calibration_measures_something() -> None:
    assert calibrate() > 0
