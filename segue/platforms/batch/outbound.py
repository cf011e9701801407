"""What is said to a batch goes nowhere: its answers are kept, and its command writes them to a file."""

from segue.ports.platform import Post, SendRefused


def refusal(post: Post) -> SendRefused:
    """Why something cannot be sent to a batch."""
    name = post.route.chat_id
    return SendRefused(f"Nobody reads at the batch {name!r}; `segue batch show {name}` shows what it was answered.")
