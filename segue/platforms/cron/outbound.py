"""What is said to a job goes nowhere: answers go where the job says that they go."""

from segue.ports.platform import Post, SendRefused


def refusal(post: Post) -> SendRefused:
    """Why something cannot be sent to a job."""
    return SendRefused(
        f"Nobody reads at the job {post.route.chat_id!r}; add it with --deliver, and its answers go where you are."
    )
