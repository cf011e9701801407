"""The settings of access: who may speak on a platform."""

from dataclasses import dataclass, field

from segue.config.declaring import about, is_word
from segue.config.kinds import Choice, Flag, Listing, Section, Text
from segue.core.access import EVERY_GROUP, AccessRules, DmAccess

_RULES = AccessRules()


def _is_one(text: str) -> bool:
    return is_word(text) and text != EVERY_GROUP


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Who may speak on a platform, beside owners and those who were let in by pairing."""

    dm: DmAccess = field(
        default=_RULES.dm,
        metadata=about(
            Choice(DmAccess),
            "What becomes of direct messages of strangers: they are given a code that you can approve (pairing), they "
            "are ignored (allowlist), they are answered (open); disabled: nobody's are answered but yours.",
        ),
    )
    groups: tuple[str, ...] = field(
        default=(),
        metadata=about(
            Listing(Text('the id of a group in quotation marks, or "*" for every group', is_word)),
            "Groups and channels in which everybody may speak.",
        ),
    )
    allow: tuple[str, ...] = field(
        default=(),
        metadata=about(
            Listing(Text("the id of a person in quotation marks", _is_one)),
            "People who may speak everywhere on the platform.",
        ),
    )
    allow_roles: tuple[str, ...] = field(
        default=(),
        metadata=about(
            Listing(Text("the id of a role in quotation marks", _is_one)),
            "Roles whose holders may speak, where a platform has roles.",
        ),
    )
    allow_bots: bool = field(
        default=_RULES.allow_bots,
        metadata=about(Flag(), "Whether messages of bots are read; which of them may speak is said above."),
    )
    mention: bool = field(
        default=_RULES.mention,
        metadata=about(Flag(), "Whether your agent has to be addressed in groups and channels to answer there."),
    )

    def rules(self, platform: str) -> AccessRules:
        """The same as the core reads it; an id may be written with its platform, as in `owners`."""
        return AccessRules(
            self.dm,
            frozenset(self.groups),
            frozenset(one.removeprefix(f"{platform}:") for one in self.allow),
            frozenset(self.allow_roles),
            self.allow_bots,
            self.mention,
        )


ACCESS = Section(AccessSettings)
