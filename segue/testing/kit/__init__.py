"""What every adapter does, as cases: yours passes them when its platform can be played or is really there.

A test brings a `Counterpart`, the other side of the adapter: the platform's server, real or played, and the people on
it. Then each case is a test:

    @pytest.mark.parametrize("case", cases_for(MyCounterpart.cannot), ids=str)
    def test_the_kit(case, tmp_path):
        asyncio.run(case.run(MyCounterpart(tmp_path)))
"""

from segue.testing.kit.cases import CASES, Case, cases_for
from segue.testing.kit.counterpart import Counterpart, Trouble

__all__ = ["CASES", "Case", "Counterpart", "Trouble", "cases_for"]
