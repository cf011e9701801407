"""Files that people sent go when nothing that is kept needs them any more."""

import time
from collections.abc import Collection

from segue.core.scope import OWNER_AT_CONSOLE
from segue.ports.store import Store
from segue.sessions.attaching import files_needed
from segue.storage.attachments import AttachmentFolder


def sweep(store: Store, folder: AttachmentFolder, at_once: Collection[str] = ()) -> int:
    """Remove what no message needs; how many files there were.

    A file comes before its message, so it is left alone for a while; those of `at_once` are not, unless they came just
    now.
    """
    began_at = time.time()
    needed = store.read(OWNER_AT_CONSOLE, files_needed)
    return folder.remove({*folder.unneeded(needed), *(set(at_once) - needed)}, before=began_at)
