"""For tests of your own: a platform and a model that do what a test says, here or in another process."""

from segue.testing.model import ScriptedModel
from segue.testing.platform import ScriptedPlatform
from segue.testing.stage import Stage

__all__ = ["ScriptedModel", "ScriptedPlatform", "Stage"]
