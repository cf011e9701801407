"""`segue` with a model that does what it is told: python gateway_launcher.py gateway run"""

from obedient_model import Obedient

from segue.app import crew
from segue.cli import main

if __name__ == "__main__":
    setattr(crew, "ProviderModel", Obedient)  # noqa: B010 - as a test does it
    setattr(crew, "warm_up", len)  # noqa: B010
    main()
