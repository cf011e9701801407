"""How the bot gets its updates: it asks for them, or has them brought. Never both."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

from bot_api.methods import Asked
from bot_api.refusals import bad, conflict
from bot_api.webhooks import Webhook
from bot_api.world import World

_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")
_HERE = ("127.0.0.1", "localhost", "::1")
_LONGEST = 50


class Written(str):
    """A result that is JSON already."""


async def get_updates(asked: Asked) -> Any:
    world, params = asked.world, asked.params
    if world.webhook is not None:
        raise conflict(
            "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
        )
    _allow(asked)
    limit = min(max(params.get("limit", 100), 1), 100)
    timeout = min(max(params.get("timeout", 0), 0), _LONGEST)
    found = await world.updates.take(params.get("offset", 0), limit, timeout)
    return Written(f"[{','.join(entry.text for entry in found)}]")


async def set_webhook(asked: Asked) -> Any:
    url, secret = asked.params["url"], asked.params.get("secret_token")
    if not url:
        return await delete_webhook(asked)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or parts.hostname not in _HERE:
        raise bad("bad webhook: an address of this machine must be provided for webhook")
    if secret is not None and not _SECRET.fullmatch(secret):
        raise bad("secret token contains unallowed characters")
    _drop(asked)
    _allow(asked)
    world = asked.world
    world.updates.end_poll("setWebhook request")
    await end_webhook(world)
    world.webhook = Webhook(url, secret, world.updates, world.deliveries, world.complaints)
    world.webhook.max_connections = asked.params.get("max_connections", 40)
    return True


async def delete_webhook(asked: Asked) -> Any:
    _drop(asked)
    await end_webhook(asked.world)
    return True


def get_webhook_info(asked: Asked) -> Any:
    world = asked.world
    told = {"url": ""} if world.webhook is None else world.webhook.info()
    allowed = {"allowed_updates": world.updates.allowed} if world.updates.allowed else {}
    return told | allowed | {"has_custom_certificate": False, "pending_update_count": len(world.updates.pending)}


async def end_webhook(world: World) -> None:
    webhook, world.webhook = world.webhook, None
    if webhook is not None:
        await webhook.close()


def _allow(asked: Asked) -> None:
    """Without a word about them, the kinds stay as they were."""
    if asked.params.get("allowed_updates") is not None:
        asked.world.updates.allowed = asked.params["allowed_updates"]


def _drop(asked: Asked) -> None:
    if asked.params.get("drop_pending_updates"):
        asked.world.complaints.append(f"the bot drops {len(asked.world.updates.pending)} pending updates")
        asked.world.updates.pending.clear()


def read_written(result: Any) -> Any:
    """What a result says; the text itself where it is no JSON."""
    if not isinstance(result, Written):
        return result
    try:
        return json.loads(result)
    except ValueError:
        return str(result)
