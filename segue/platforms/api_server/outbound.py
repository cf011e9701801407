"""What is said to a program lies ready for it as soon as it is written down, and the program fetches it."""

from segue.ports.platform import Post, Sent


def laid_ready(post: Post) -> Sent:
    return Sent(post.key)
