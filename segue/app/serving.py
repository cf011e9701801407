"""A gateway, put together: the settings, the store, the tools by role, and who answers."""

import gc
import hashlib
import logging
import os
import time
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

from segue import app, config
from segue.agent.compression import Compression
from segue.agent.compression import Means as CompressionMeans
from segue.agent.delegating import Workplace, delegate
from segue.agent.door import Door
from segue.agent.holding import Holds
from segue.agent.naming import Namer
from segue.agent.offline import OfflineAgent
from segue.agent.summarising import Summariser
from segue.agent.turn import Agrees
from segue.app.connecting import files_of, tools_of_hooks
from segue.app.crew import Crew
from segue.app.observing import Observing
from segue.app.rules import rules_of
from segue.app.workshop import Workshop, can_write, sizes_of
from segue.config import Settings
from segue.config.agents_settings import NamedAgentSettings
from segue.config.chat_settings import Approval
from segue.core.access import AccessRules
from segue.core.attachments import Attachment
from segue.core.errors import NoModel
from segue.core.events import Compressed, Event, ToolCall
from segue.core.inbound import Inbound
from segue.core.inbox import Entry
from segue.core.keys import DEFAULT_AGENT, HOOK, Task, is_shared, parse_key
from segue.core.leases import Run
from segue.core.lifecycle import Continue, Lane
from segue.core.preferences import Preferences
from segue.core.prompts import Place, subagent_prompt, system_prompt
from segue.core.reading import Reading, read
from segue.core.routes import Route
from segue.core.scope import OWNER, OWNER_AT_CONSOLE, Audience, Principal, Scope
from segue.core.sessions import Session
from segue.core.situation import Disguise, Earlier, Situation, across_platforms, options_of, situation_text
from segue.core.sizes import UNKNOWN_WINDOW
from segue.core.sources import API_SERVER, BATCH, UNATTENDED
from segue.gateway.agreeing import Agreements
from segue.gateway.answering import Staff
from segue.gateway.assembling import Grounds, assemble, traits_among
from segue.gateway.clerk import Means, Told
from segue.gateway.gateway import Gateway
from segue.gateway.holding import LaneHolder
from segue.gateway.lanes import Errand
from segue.gateway.live import LiveAgents
from segue.gateway.onlookers import Onlookers
from segue.gateway.probing import Probe
from segue.gateway.watching import Watching
from segue.hookspecs import Group, Hooks, load
from segue.ports.agent import Agent
from segue.ports.model import Model
from segue.ports.platform import Platform
from segue.ports.store import Transaction
from segue.ports.tool import Tool
from segue.sessions.admitting import Routing
from segue.sessions.answering import House
from segue.sessions.commanding import looking
from segue.sessions.commanding.acts import Linked
from segue.sessions.commanding.acts import Situation as CommandSituation
from segue.sessions.delivering import Posting
from segue.sessions.enclosing import enclose
from segue.sessions.finding import get_session
from segue.sessions.handing import homes_among
from segue.sessions.opening import Opened, Rules
from segue.sessions.outgoing_messages import send_message
from segue.sessions.retaining import Keeping
from segue.storage.store import SqlStore
from segue.tools.memory import Memory
from segue.tools.send_file import SendFile
from segue.tools.send_message import SendMessage
from segue.tools.session_search import SessionSearch
from segue.tools.toolbox import notes_of, tools_for
from segue.upkeep.living import is_gone
from segue.upkeep.sweeping import sweep

NO_MODEL = (
    "There is no model here, so nothing was asked: set a key such as OPENAI_API_KEY or ANTHROPIC_API_KEY, or `model` in"
    " config.yaml."
)

_DISGUISE = "gateway:disguise"
"""Where the key is kept that ids are hidden with."""

_UNCOLLECTED = 20_000
"""Objects that may be left before the first generation is gone through."""

_log = logging.getLogger(__name__)


def settle_in() -> None:
    """Make a process ready to serve many: what is loaded stays, and is not gone through again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_UNCOLLECTED, 20, 20)


class Serving:
    """A gateway, and what has to be closed with it."""

    def __init__(
        self,
        settings: Settings,
        store: SqlStore,
        run: Run,
        platforms: Sequence[Platform],
        restart: Callable[[], None],
        errand: Errand | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._zone = config.zone_here()
        self._door = Door(store, OWNER_AT_CONSOLE)
        self._platforms = platforms
        self._disguise = self._made_disguise()
        self._tools_of_hooks = tools_of_hooks(settings)
        self._workshop = Workshop(
            settings, store, Scope(OWNER), run.id, Path.cwd(), self._search(Scope(OWNER)), _log.warning
        )
        self.crew = Crew(settings, config.environment_of_models(), _log.warning)
        self._live = LiveAgents()
        self._observing = Observing(settings, [one.name for one in platforms])
        self._namer = Namer(self._door, self._small_model)
        posting = self._posting = Posting(traits_among(platforms), settings.session.send_policy.policy)
        self._files = files_of(settings)
        self._agreements = Agreements(self._door, posting, lambda: self.gateway.sent())
        self.onlookers = Onlookers()
        keys = settings.key_rules
        freshness = timedelta(seconds=settings.agent.auto_continue_freshness)
        house = House(Rules(keys, settings.reset_policies, freshness), posting, self._prompt)
        routing = Routing(keys, self._access_on, settings.queue.on, self._agent_of, self._reading, posting)
        hooks = Hooks(load(Group.HOOKS), self._observing.counters.hear)
        self.gateway: Gateway = assemble(
            Grounds(store, run, is_gone, is_alone=not settings.is_on_server and errand is None, errand=errand),
            house,
            self._staff(),
            self._means(restart),
            routing,
            platforms,
            settings.agent.drain_timeout,
            self._watching(),
            hooks,
            settings.streaming.on,
        )
        self._tell = hooks.tell
        self.gateway.questions = self._agreements
        self.probe = Probe(self.gateway, self._observing.counters)

    def _staff(self) -> Staff:
        return Staff(
            agent_for=self._agent_for,
            agrees=self._agreeing,
            compression=self._compression,
            new_session_id=app.new_session_id,
            queue=self._settings.queue.on,
            showing=self.onlookers.showing,
            seen=self._observing.seen,
            turn_seconds=self._settings.agent.turn_timeout,
            freshness=self._settings.agent.auto_continue_freshness,
            ended=self._name,
            limits=self._settings.gateway.turn_limits,
        )

    def _means(self, restart: Callable[[], None]) -> Means:
        return Means(
            self._reading,
            self._situated,
            self._compress,
            restart,
            self._settings.stop_suspends,
            self._settings.queue.on,
            self._parts,
            self.crew.until_known,
        )

    def _access_on(self, platform: str) -> AccessRules | None:
        """Who may speak; at the doors of programs whoever has the secret may."""
        return None if platform in (*UNATTENDED, API_SERVER) else self._settings.access_on(platform)

    def _watching(self) -> Watching:
        days, retention = self._settings.session_store_max_age_days, self._settings.retention
        return Watching(
            live=self._live,
            can_take_notes=lambda session: can_write(self._notes(_scope_of_session(session), session.agent)),
            max_age=timedelta(days=days) if days else None,
            keeping=Keeping(retention.trash_days, retention.prune_days),
            sweep=lambda: sweep(self._store, self._files),
        )

    def _notes(self, scope: Scope, agent: str) -> Path:
        """Where an agent keeps what it wants to remember: each has notes of its own."""
        memory = self._settings.home / "memory"
        return notes_of(scope, memory if agent == DEFAULT_AGENT else memory / "agents" / agent)

    def begin(self) -> None:
        self._workshop.begin()

    async def close(self) -> None:
        await self._workshop.stop()
        await self._namer.close()
        await self._live.close()
        await self._workshop.close()
        await self.crew.close()
        self._door.close()
        self.gateway.close()
        await self._observing.close()

    # Who answers, and with what

    def _search(self, scope: Scope) -> SessionSearch:
        return SessionSearch(self._store, scope, lambda: self._zone, now=time.time, clock=time.monotonic)

    def _tools_in(self, opened: Opened) -> list[Tool]:
        """What a session is answered with; for a hook that was given tools of the owner, those and no others."""
        given = self._given(opened)
        found = self._tools(_scope_of(opened) if given is None else Scope(OWNER), opened.session.agent)
        if self._can_send_messages(opened):
            found = [SendMessage(self._send_message), *found]
        if self._can_send_files(opened):
            found = [SendFile(Path.cwd(), self._settings.home, self._files, self._enclose), *found]
        return [tool for tool in found if given is None or tool.spec.name in given]

    def _can_send_files(self, opened: Opened) -> bool:
        """Whether an owner is answered where files can be sent."""
        origin, named = opened.lane.origin, self._named(opened.session.agent)
        if origin is None or _scope_of(opened) != Scope(OWNER):
            return False
        traits = self._posting.traits(origin.platform, origin.account or "")
        is_given = named.tools is None or SendFile.spec.name in named.tools
        return traits is not None and traits.can_attach and is_given

    def _can_send_messages(self, opened: Opened) -> bool:
        """Whether an owner is answered alone, or a hook was given the tool, and its agent may use it."""
        tools, given = self._named(opened.session.agent).tools, self._given(opened)
        is_given = tools is None or SendMessage.spec.name in tools
        return is_given and (_scope_of(opened) == Scope(OWNER) or SendMessage.spec.name in (given or ()))

    async def _send_message(self, session_id: str, route: Route, text: str) -> str:
        run_id = self.gateway.presence.run.id
        keys, homes = self._settings.key_rules, self._settings.homes
        queued = await self._door.write(
            send_message, self._posting, keys, homes, run_id, session_id, route, text, time.time()
        )
        self.gateway.sent()
        return queued

    async def _enclose(self, session_id: str, file: Attachment, text: str) -> None:
        run_id = self.gateway.presence.run.id
        await self._door.write(enclose, self._posting, run_id, session_id, file, text, time.time())
        self.gateway.sent()

    def _tools(self, scope: Scope, agent: str = DEFAULT_AGENT) -> list[Tool]:
        """Owners get the machine where nobody else looks on; everybody else what is theirs.

        An agent with a name may be allowed less.
        """
        notes, named = self._notes(scope, agent), self._named(agent)
        if scope == Scope(OWNER):
            found = self._workshop.tools(self._delegate, notes)
        else:
            found = tools_for(machine=None, notes=notes, search=self._search(scope))
        usable = {tool.spec.name for tool in found} if named.tools is None else set(named.tools)
        return [tool for tool in found if tool.spec.name in usable and (named.memory or not isinstance(tool, Memory))]

    def _given(self, opened: Opened) -> Collection[str] | None:
        """The owner's tools that the settings give to a hook; nothing for anybody else."""
        place = parse_key(opened.lane.key, self._settings.session.main_key)
        return self._tools_of_hooks.get(place.name[0]) if isinstance(place, Task) and place.kind == HOOK else None

    def _named(self, agent: str) -> NamedAgentSettings:
        return self._settings.agents.get(agent) or NamedAgentSettings()

    def _settled(self, agent: str, chosen: Preferences) -> Preferences:
        """What was chosen, and otherwise what an agent has of its own."""
        return chosen._replace(model=chosen.model or self._named(agent).model or None)

    async def _agent_for(self, opened: Opened, chosen: Preferences) -> Agent:
        scope = _scope_of(opened)
        if scope == Scope(OWNER) or self._given(opened):
            await self._workshop.ready(opened.session.cwd)
        session, tools = opened.session, self._tools_in(opened)
        chosen = self._settled(session.agent, chosen)
        if session.source == BATCH and await self.crew.is_offline(chosen):
            raise NoModel(NO_MODEL)  # what is answered once should be answered by a model
        offline = OfflineAgent(self._store, scope, time.time, lambda: self._zone)
        terms = (chosen, session.cwd, [tool.spec for tool in tools])
        return await self._live.agent_for(session.id, terms, lambda: self.crew.agent_for(chosen, tools, offline))

    async def _delegate(self, task: str, session_id: str) -> str:
        """A task of an owner's session, done by a subagent; whoever is answered there is asked what it may do."""
        session = await self._door.read(get_session, session_id)
        answered = await self._door.read(lambda tx: tx.inbox.running(session.lane_key or ""))
        place = Workplace(
            door=self._door,
            presence=self.gateway.presence,
            agent_for=self._subagent_for,
            agrees=self._agreeing(answered[-1]) if answered else _nobody_agrees,
            compression=lambda _: None,
            new_session_id=app.new_session_id,
            prompt=lambda began: subagent_prompt(self._workshop.prompt(began, self._workshop.tools(None))),
            zone=self._zone,
            tell=self._tell,
        )
        return await delegate(place, task, session_id)

    async def _subagent_for(self, chosen: Preferences) -> Agent:
        offline = OfflineAgent(self._store, Scope(OWNER), time.time, lambda: self._zone)
        return await self.crew.agent_for(chosen, self._workshop.tools(None), offline)

    def _agreeing(self, entry: Entry) -> Agrees:
        approvals = self._settings.agent.approvals

        async def agrees(call: ToolCall, risk: str) -> bool:
            if approvals is Approval.ASK and entry.is_person:
                return await self._agreements.ask(entry, call, risk)
            return approvals is Approval.ALLOW and bool(entry.is_person)

        return agrees

    def _agent_of(self, inbound: Inbound) -> str:
        source = inbound.source
        names = {source.platform, f"{source.platform}:{source.chat_id}", f"{source.platform}:{source.peer}"}
        for name, said in self._settings.agents.items():
            if names & set(said.bindings):
                return name
        return DEFAULT_AGENT

    # What is said and told

    def _reading(self, said: Inbound | Entry) -> Reading:
        return read(said.text, bot=self._bot(said), triggers=self._settings.session.reset_triggers)

    def _bot(self, said: Inbound | Entry) -> str:
        name = said.platform if isinstance(said, Entry) else said.source.platform
        return next((getattr(one, "bot", "") for one in self._platforms if one.name == name), "")

    def _prompt(self, tx: Transaction, opened: Opened, earlier: Earlier | None) -> str:
        lane, source, agent = opened.lane, opened.lane.origin, opened.session.agent
        assert source is not None
        place = parse_key(lane.key, self._settings.session.main_key)
        names = [tool.spec.name for tool in self._tools_in(opened)]
        began = lane.updated_at or lane.last_person_at
        told = system_prompt(Place(began.astimezone(self._zone), source.platform, None), names)
        connected = tuple(sorted(one.name for one in self._platforms if one.name != BATCH))
        is_owners = _scope_of(opened) == Scope(OWNER)
        homes = homes_among(tx, connected, self._settings.homes) if is_owners else ()
        situation = Situation(
            source, is_shared(place), connected, homes, options_of(homes), earlier, across_platforms(place)
        )
        own, kept = self._named(agent).prompt, self._told_of_files() if self._can_send_files(opened) else ""
        return "\n\n".join(filter(None, [told, own, situation_text(situation, self._disguise), kept]))

    def _told_of_files(self) -> str:
        """Only owners can look there."""
        return f"Files that people send are kept as their messages say, in the folder {self._settings.home}."

    def _situated(self, scope: Scope, agent: str, chosen: Preferences) -> CommandSituation:
        deadline = time.monotonic() + looking.SEARCH_SECONDS
        return CommandSituation(
            session_id=None,
            now=time.time(),
            zone=self._zone,
            new_session_id=app.new_session_id(),
            model=self.crew.named(self._settled(agent, chosen)),
            public_model=self.crew.public_name(self._settled(agent, chosen)),
            models=self.crew.resolve,
            meant=self.crew.meant,
            greets=lambda begun: self.crew.can_greet(self._settled(agent, begun)),
            homes=self._settings.homes,
            links=self._links() if scope == Scope(OWNER) else (),
            parts=sizes_of(self._tools(scope, agent)),
            time_left=lambda: deadline - time.monotonic(),
        )

    def _parts(self, lane: Lane, session: Session) -> list[tuple[str, int]]:
        """Return the tools that a session is answered with, and their sizes."""
        return sizes_of(self._tools_in(Opened(lane, session, Continue())))

    def _links(self) -> list[Linked]:
        found = [(one.platform.name, one.link) for one in self.gateway.connections]
        return [Linked(name, link.since if link.is_up or link.is_standby else None) for name, link in found]

    def _made_disguise(self) -> Disguise | None:
        """Ids are hidden by a secret of this home, so that what a model is told stays the same."""
        if not self._settings.privacy.redact_ids:
            return None
        secret = self._store.write(OWNER_AT_CONSOLE, _kept_secret, os.urandom(32).hex())
        raw = frozenset(one.name for one in self._platforms if one.traits.needs_raw_ids)
        return Disguise(hashlib.sha256(secret.encode()).digest(), raw)

    # Conversations that become long

    def _compression(self, holder: Holds, opened: Opened) -> Compression:
        notes = self._notes(_scope_of(opened), opened.session.agent)
        means = CompressionMeans(
            partial(self._summariser, opened), app.new_session_id, lambda: can_write(notes), rules_of(self._settings)
        )
        return Compression(self._door, holder, means)

    async def _name(self, session: Session) -> None:
        """A conversation that has no title gets one."""
        if session.title is None:
            await self._namer.consider(session.id)

    async def _small_model(self) -> Model | None:
        found = await self.crew.auxiliary(Preferences())
        return found[0] if found else None

    async def _summariser(self, opened: Opened) -> Summariser:
        found = await self.crew.auxiliary(Preferences())
        if found is None:
            return Summariser(None)
        model, window = found
        return Summariser(model, window or opened.session.context_window or UNKNOWN_WINDOW)

    async def _compress(self, holder: LaneHolder, entry: Entry, focus: str, told: Told) -> str:
        """`/compress` in a lane."""
        lane = await self._door.read(lambda tx: tx.lanes.find(entry.lane_key))
        session = await self._door.read(lambda tx: tx.sessions.find(lane.session_id or "") if lane else None)
        if lane is None or session is None:
            return "There is nothing to compress: nothing has been said yet."
        compression = self._compression(holder, Opened(lane, session, Continue()))

        def ending(tx: Transaction, compressed: Compressed) -> None:
            told(tx, compressed.notice)

        done = await compression.compress_on_request(holder.lease, session, focus, _shown, ending)
        if done is None:
            return "There is nothing to compress yet: all of it is what was said last."
        return Compressed(done.session.id, done.session.title).notice


def _scope_of(opened: Opened) -> Scope:
    return Scope(Principal(opened.lane.principal), Audience(opened.lane.audience))


def _scope_of_session(session: Session) -> Scope:
    return Scope(Principal(session.principal), Audience(session.audience))


def _kept_secret(tx: Transaction, fresh: str) -> str:
    kept = tx.meta.get(_DISGUISE)
    if kept is None:
        tx.meta.set(_DISGUISE, fresh)
    return str(kept or fresh)


def _shown(_event: Event) -> None: ...


async def _nobody_agrees(_call: ToolCall, _risk: str) -> bool:
    return False
