"""What is said to a hook goes nowhere: whoever called has gone. Answers go where `deliver` says."""

from segue.ports.platform import Post, SendRefused


def refusal(post: Post) -> SendRefused:
    """Why something cannot be sent to a hook."""
    name = post.route.chat_id
    return SendRefused(
        f"Nobody reads at the hook {name!r}; platforms.webhook.hooks.{name}.deliver says where its answers go."
    )
