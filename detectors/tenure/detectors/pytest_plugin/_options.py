"""What the plugin can be told; loaded at every start of pytest."""

from typing import Final

FAIL_ON: Final = ("violation", "warning")
"""What the setting `tenure_fail_on`, and `fail_on` of the mark, may say."""

SETTING: Final = "tenure_fail_on"
"""Name of the setting in pytest's configuration."""
