"""What is said in a Matrix room: the content of an event, and the name of its transaction."""

import hashlib
import json
from typing import Any

from segue.core.attachments import Attachment
from segue.core.text import shorten
from segue.platforms.matrix.markup import html_from
from segue.ports.platform import Post

Content = dict[str, Any]

LONGEST = 12_000
"""Bytes of a text. In an encrypted room each of them may take three, and its ciphertext a third more."""
LARGEST = 60_000
"""Bytes of an event that no homeserver refuses; what belongs to the envelope is left some room."""
_FALLBACK = 200
_GROWTH = 4 / 3
_KINDS = {"image": "m.image", "audio": "m.audio", "video": "m.video"}


def transaction_of(key: str) -> str:
    """The same for the same key, in characters that every path takes."""
    return f"segue-{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"


def text_content(post: Post) -> Content:
    """A text as a message."""
    return fitted({**_said(post.text), **_relation(post)})


def edit_content(post: Post, event_id: str) -> Content:
    """A text as what a message says from now on. Those who know no edits see the beginning of it."""
    new = _said(post.text)
    relation = {"rel_type": "m.replace", "event_id": event_id}
    fallback = {"msgtype": "m.text", "body": f"* {shorten(post.text, _FALLBACK)}", "m.mentions": {}}
    return fitted({**fallback, "m.new_content": new, "m.relates_to": relation})


def file_content(post: Post, file: Attachment, place: Content) -> Content:
    """A file as a message; `place` says where it is, and how it is decrypted."""
    info = {"mimetype": file.kind} | ({} if file.size is None else {"size": file.size})
    kind = _KINDS.get(file.kind.partition("/")[0], "m.file")
    below = _said(post.text) if post.text.strip() else {"body": file.name, "m.mentions": {}}
    content = {**below, "msgtype": kind, "filename": file.name, "info": info, **place, **_relation(post)}
    return fitted(content)


def fitted(content: Content) -> Content:
    """The same, without its HTML where that makes it too large."""
    if measured(content) <= LARGEST:
        return content
    new = content.get("m.new_content")
    return _unformatted(content if new is None else {**content, "m.new_content": _unformatted(new)})


def _unformatted(content: Content) -> Content:
    return {name: value for name, value in content.items() if name not in ("format", "formatted_body")}


def measured(content: Content) -> int:
    """Bytes of it in an encrypted room, which are the most that it can have."""
    return int(len(json.dumps(content, separators=(",", ":"))) * _GROWTH)


def _said(text: str) -> Content:
    html = html_from(text)
    formatted = {} if html is None else {"format": "org.matrix.custom.html", "formatted_body": html}
    return {"msgtype": "m.text", "body": text, **formatted, "m.mentions": {}}


def _relation(post: Post) -> Content:
    """Where it belongs: in a thread, and there those who know none see a reply."""
    thread, answered = post.route.thread_id, post.reply_to
    if thread:
        aimed = {"m.in_reply_to": {"event_id": answered or thread}, "is_falling_back": True}
        return {"m.relates_to": {"rel_type": "m.thread", "event_id": thread, **aimed}}
    return {"m.relates_to": {"m.in_reply_to": {"event_id": answered}}} if answered else {}
