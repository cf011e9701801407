"""Configuration: `config.yaml` and the environment become frozen settings, once, at the edge.

This package is the only reader of the environment. What a setting is called, means and allows is said once, in
`settings.py`; error messages, the template and the reference page are made from there.
"""

from segue.config.masking import masked
from segue.config.reading import (
    check,
    config_file,
    environment_of_models,
    environment_of_tools,
    from_environment,
    home_from,
    load,
    notes_from_environment,
    page_like_git,
    settings_from,
    token_of_environment,
    wanted_columns,
    wants_colour,
    zone_here,
)
from segue.config.settings import SQLITE, Settings

__all__ = [
    "SQLITE",
    "Settings",
    "check",
    "config_file",
    "environment_of_models",
    "environment_of_tools",
    "from_environment",
    "home_from",
    "load",
    "masked",
    "notes_from_environment",
    "page_like_git",
    "settings_from",
    "token_of_environment",
    "wanted_columns",
    "wants_colour",
    "zone_here",
]
