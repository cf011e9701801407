"""The process: worlds come and go through a port for the tests alone. It ends with whoever started it."""

import asyncio
import dataclasses
import json
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

from aiohttp import web

from bot_api import models
from bot_api.people import People
from bot_api.records import State
from bot_api.serving import Serving
from bot_api.troubles import Trouble
from bot_api.world import World

_Doing = Callable[..., Any]


class Place:
    """A world with all that a test may do in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.serving = Serving(world)
        people = People(world)
        self.doings: dict[str, _Doing] = {
            "say": people.say,
            "edit": people.edit,
            "press": people.press,
            "update": people.update,
            "redeliver": people.redeliver,
            "release": people.release,
            "migrate": people.migrate,
            "user": world.user,
            "chat": lambda **told: world.chat(**told).info,
            "refuse": self._refuse,
            "trouble": lambda **told: world.troubles.add(Trouble(**told)),
            "calm": world.troubles.calm,
            "limit": lambda seconds: setattr(world, "seconds_between", seconds),
            "down": self.serving.down,
            "up": self.serving.up,
            "forgive": world.complaints.clear,
            "calls": lambda since: [one for one in world.calls if one.number > since],
            "untaken": lambda: world.untaken,
            "messages": lambda: list(world.messages.values()),
            "deliveries": lambda: world.deliveries,
            "state": self._state,
        }

    def _refuse(self, chat: int, code: int, description: str | None) -> None:
        self.world.chat(chat).refusal = None if description is None else (code, description)

    def _state(self) -> State:
        return State(
            complaints=self.world.complaints,
            commands=self.world.commands,
            pending=[entry.update_id for entry in self.world.updates.pending],
            is_polled=self.world.updates.is_polled,
            allowed_updates=self.world.updates.allowed,
            webhook=None if self.world.webhook is None else self.world.webhook.info(),
        )


class Server:
    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._numbers = count(710_000_001)

    async def open(self, **details: Any) -> dict[str, Any]:
        bot: dict[str, Any] = {
            "id": next(self._numbers),
            "is_bot": True,
            "first_name": "Segue",
            "username": "segue_bot",
        }
        abilities = ("can_join_groups", "can_read_all_group_messages", "has_topics_enabled")
        bot |= dict.fromkeys(abilities, True) | {"supports_inline_queries": False} | details
        place = Place(World(bot))
        await place.serving.start()
        self._places[place.world.token] = place
        return {"token": place.world.token, "port": place.serving.port, "bot": bot}

    async def close(self, token: str) -> None:
        await self._places.pop(token).serving.close()

    async def answer(self, request: web.Request) -> web.Response:
        asked = await request.json()
        try:
            place = self._places.get(asked["world"])
            ours: dict[str, _Doing] = {"open": self.open, "close": self.close}
            doings = ours if place is None else place.doings
            result = doings[asked["do"]](**asked["with"])
            if asyncio.iscoroutine(result):
                result = await result
        except Exception as error:  # noqa: BLE001
            return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=400)
        return web.json_response({"result": result}, dumps=_written)


def _written(value: Any) -> str:
    return json.dumps(value, default=dataclasses.asdict)


async def main() -> None:
    models.load()
    server = Server()
    app = web.Application(client_max_size=2**30)
    app.router.add_post("/", server.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(json.dumps({"port": runner.addresses[0][1]}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
