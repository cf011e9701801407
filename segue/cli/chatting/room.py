"""One chat in one terminal: what is typed goes to the conversation, and what comes of it to the screen."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from errno import EIO
from pathlib import Path

from segue.agent.chat import Chat
from segue.app.chatting import OpenChat
from segue.app.crew import OFFLINE
from segue.cli.chatting import interrupts
from segue.cli.chatting.asking import SECONDS, Agreement, Prompt
from segue.cli.chatting.beginning import Beginning
from segue.cli.chatting.farewell import farewell
from segue.cli.chatting.json_answer import JsonAnswer
from segue.cli.chatting.piping import Pipe
from segue.cli.chatting.recap_panel import recap_line, recap_panel
from segue.cli.chatting.screen import Screen
from segue.cli.chatting.standing import OFFLINE as NO_KEY
from segue.cli.chatting.standing import Standing
from segue.config import Settings
from segue.config.chat_settings import Approval, ResumeDisplay
from segue.core.commands import Command, Unknown, parse
from segue.core.errors import Invalid, NotFound, SegueError
from segue.core.events import CarryOn, Done, Event, Failed, Note, Steered, ToolCall, ToolFinished
from segue.core.messages import SUMMARY_SEQ, Spot
from segue.core.preferences import Verbosity
from segue.core.recap import recap
from segue.core.scope import OWNER_AT_CONSOLE
from segue.core.titles import shorten_title
from segue.sessions.commanding.acts import Again, Answer, Begin, Compress, Handed, Quit, Stop, Switch
from segue.sessions.commanding.helping import unknown
from segue.sessions.finding import get_session
from segue.sessions.reading import transcript_of
from segue.storage.store import SqlStore
from segue.storage.waiting import tell_waits_to

_LONGEST_NAME = 60


class Room:
    """One chat in one terminal."""

    def __init__(
        self,
        settings: Settings,
        store: SqlStore,
        cwd: Path,
        begin: Beginning,
        standing: Standing,
        screen: Screen | Pipe,
    ) -> None:
        self._settings = settings
        self._store = store
        self._begin = begin
        self._is_single = begin.question is not None
        self._screen = screen
        self._open = OpenChat(settings, store, cwd, self._agrees, self._tell)
        self._chat: Chat = self._open.chat
        self._prompt: Prompt | None = None
        self._allowed: set[str] = set()
        self._refused: set[str] = set()
        self._later: list[str] = []
        self._standing = standing
        standing.model = lambda: NO_KEY if self._chat.model == OFFLINE else self._chat.model
        self._open.crew.when_known(standing.redraw)
        self._failure: str | None = None
        self._is_elsewhere = False

    async def enter(self, prompt: Prompt | None) -> None:
        """Go where the person wants to be; whoever answers meanwhile can ask them already."""
        self._prompt = prompt
        if prompt is not None:
            loop = asyncio.get_running_loop()
            tell_waits_to(lambda sentence: loop.call_soon_threadsafe(self._tell, sentence))
        await self._open.begin()
        await self._go()

    async def _go(self) -> None:
        answer: Answer | None = None
        name = self._begin.name
        if self._begin.is_latest and (name := await self._chat.find_latest()) is None:
            raise NotFound("There is no conversation to go on with yet; `segue` begins one.")
        if name is not None and self._begin.is_branch:
            answer = await self._chat.branch(name, is_exact=self._begin.is_exact)
            self._screen.say("" if self._is_single else answer.text)
        elif name is not None:
            answer = await self._chat.resume(name)
        if self._begin.model:
            await self._chat.command(Command("model", self._begin.model))
        if answer is not None:
            await self._arrived(answer)

    async def answer_once(self, question: str) -> int:
        if not question.strip():
            raise Invalid("The question is empty.")
        await self._turn(question)
        return 1 if self._failure else 0

    async def talk(self, prompt: Prompt, first: Awaitable[str | None] | None = None) -> int:
        """Until the person leaves; what they say `first` may be being typed already."""
        await self._refresh()
        text = self._next_waiting() or await (first or prompt.ask())
        while text is not None:
            if text.strip() and not await self._take(text):
                break
            await self._refresh()
            text = self._next_waiting() or await prompt.ask()
        return 0

    def abandon(self) -> None:
        """Leave the answer that is being written open: whoever resumes the session gets the rest of it."""
        self._chat.abandon()

    async def leave(self) -> None:
        if self._prompt is not None:
            tell_waits_to(None)
        session = await self._chat.session()
        await self._open.close()
        if session is not None and isinstance(self._screen, JsonAnswer):
            self._screen.session = self._store.read(
                OWNER_AT_CONSOLE, get_session, session.id
            )  # it has its title by now
        if session is not None and isinstance(self._screen, Screen) and not self._is_single:
            self._screen.say(farewell(session.id, session.title))

    # What is typed

    async def _take(self, text: str) -> bool:
        """Do what was typed; whether the chat goes on."""
        try:
            match parse(text):
                case Unknown() as misspelt:
                    self._screen.say(unknown(misspelt))
                case Command() as command:
                    return await self._command(command)
                case None:
                    await self._turn(text)
        except SegueError as error:
            self._screen.show(Failed(str(error)))
        return True

    async def _command(self, command: Command) -> bool:
        answer = await self._chat.command(command)
        if answer.text and not isinstance(answer.act, Quit):
            self._screen.say(answer.text)
        if isinstance(answer.act, Switch | Begin | Handed):
            self._allowed.clear()
        match answer.act:
            case Quit():
                return False
            case Switch(recap=True):
                await self._arrived(answer, is_told=True)
            case Begin(text=str(text)):
                await self._turn(text)
            case Begin():
                await self._greeting()
            case Again(content=content, undo_from=spot):
                await self._turn(content, undo_from=spot)
            case Compress(focus):
                await self._listened_to(self._chat.compress(focus, self._show))
            case Stop():
                self._screen.say("Nothing is being done.")
        return True

    async def _greeting(self) -> None:
        self._screen.begin()
        await self._listened_to(self._chat.greet(self._show))

    async def _turn(self, content: object, *, undo_from: Spot | None = None) -> None:
        self._failure, self._is_elsewhere = None, False
        self._screen.begin()
        try:
            await self._listened_to(self._chat.say(content, self._show, undo_from=undo_from))
        except SegueError as error:
            self._show(Failed(str(error)))
        if self._is_elsewhere:
            self._allowed.clear()
            await self._arrived(Answer("", None))

    async def _arrived(self, answer: Answer, *, is_told: bool = False) -> None:
        """In another conversation: what was said there last, and what is left to be said."""
        if isinstance(answer.act, Switch) and answer.act.note and not is_told:
            self._tell(answer.act.note)
        if not self._is_single:
            if answer.text and not is_told and not isinstance(answer.act, Switch):
                self._screen.say(answer.text)
            await self._recall()
            await self._refresh()
        self._screen.begin()
        await self._listened_to(self._chat.take_up(self._show))

    async def _listened_to(self, working: Awaitable[object]) -> None:
        if self._prompt is None:
            with interrupts.calling(self._chat.stop):
                await working
            return
        async with self._prompt.listening(self._screen, self._chat.stop, self._overhear):
            await working

    def _next_waiting(self) -> str | None:
        """What was typed while the agent worked and is to be done now."""
        if not self._later:
            return None
        self._screen.show(Steered(self._later[0]))
        return self._later.pop(0)

    def _overhear(self, text: str) -> None:
        """Something was typed while the agent works: a word to it, or a command that waits unless it is /stop."""
        match parse(text):
            case Command("stop"):
                self._chat.stop()
            case None if self._chat.steer(text):
                pass
            case None:
                self._later.append(text)
            case _:
                self._later.append(text)
                self._tell(f"{text.split()[0]} is done when this answer is there; /stop ends it at once.")

    async def _recall(self) -> None:
        session = await self._chat.session()
        if session is None:
            return
        parts = self._store.read(OWNER_AT_CONSOLE, transcript_of, session.id)
        said = recap([message for part in parts for message in part.messages if message.seq != SUMMARY_SEQ])
        is_full = self._settings.display.resume_display is ResumeDisplay.FULL
        shown = (recap_panel if is_full else recap_line)(said, session.id, session.title)
        if isinstance(self._screen, Screen):
            self._screen.put(shown)

    # What is shown

    def _show(self, event: Event) -> None:
        match event:
            case Failed(sentence):
                self._failure = sentence
            case CarryOn():
                self._is_elsewhere = True
            case ToolFinished(call) if call.id in self._refused:
                event = replace(event, output="not allowed")  # the whole sentence is for the model
            case Done(was_stopped=True):
                for line in self._later:
                    self._tell(f"Not done any more: {line}")
                self._later.clear()
        try:
            self._screen.show(event)
        except OSError as error:
            if error.errno != EIO:
                raise
            self.abandon()  # the terminal is gone, and the answer is for whoever resumes the session

    def _tell(self, sentence: str) -> None:
        self._screen.show(Note(sentence))

    async def _refresh(self) -> None:
        session = await self._chat.session()
        name = (session.title or session.first_line) if session else "new conversation"
        self._standing.name = shorten_title(name, _LONGEST_NAME)
        if isinstance(self._screen, Screen):
            self._screen.verbosity = self._chat.preferences.verbose or Verbosity.TOOLS

    async def _agrees(self, call: ToolCall, risk: str) -> bool:
        policy = Approval.ALLOW if self._begin.is_allowed else self._settings.agent.approvals
        if policy is not Approval.ASK or call.name in self._allowed:
            return policy is not Approval.DENY
        if self._prompt is None:
            self._refused.add(call.id)
            self._tell(f"{call.name} was not allowed, because nobody could be asked; --yes allows it.")
            return False
        kind = "commands" if call.name == "terminal" else f"uses of {call.name}"
        agreement = await self._prompt.agree(f"{call.name}: {risk}", kind)
        if agreement is Agreement.ALL:
            self._allowed.add(call.name)
        if agreement in (Agreement.YES, Agreement.ALL):
            return True
        self._refused.add(call.id)
        if agreement is Agreement.NOBODY:
            self._tell(f"Nobody answered within {SECONDS:.0f} seconds.")
        if agreement is Agreement.STOP:
            self._chat.stop()
            await asyncio.sleep(0)  # where the turn ends
        return False
