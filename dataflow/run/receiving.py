"""What arrives at one worker, and where it goes: to a dataflow, to flow control, to the protocol of the membership."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import TYPE_CHECKING

from dataflow.comm.backlog import Backlog
from dataflow.comm.conversation import Conversation
from dataflow.comm.flow import Flow
from dataflow.comm.messages import (
    AnyMessage,
    BlocksReturned,
    Consumed,
    Data,
    Finished,
    Goodbye,
    Hello,
    Membership,
    Message,
    Pressure,
    Progress,
)
from dataflow.errors import ProtocolError
from dataflow.progress.broadcast import UNNUMBERED, ProgressBatch
from dataflow.run.agreement import check_finished, check_unbuilt
from dataflow.run.flowing import Flowing

if TYPE_CHECKING:
    from dataflow.members.changing import Changing
    from dataflow.run.dataflow import Dataflow


class Receiving(Flowing):
    """A worker as far as it is sent messages. (A part of `Pump`.)"""

    changes: Changing

    def __init__(self, index: int, peers: int, limit: int) -> None:
        super().__init__(Flow(peers, limit))
        self.index = index
        self._mailbox: deque[AnyMessage] = deque()
        self._dataflows: dict[int, Dataflow] = {}
        self.built = 0  # how many dataflows main has built
        self._ended: set[int] = set()  # numbers of dataflows that are complete or dropped
        self._unbuilt = Backlog(limit)  # messages for dataflows that main has not built yet
        self.conversations = {peer: Conversation(peer) for peer in range(peers)}  # with those at the ends of links
        self._departed: set[int] = set()  # who has said goodbye
        self._finished: dict[int, int] = {}  # by peer whose main has returned, how many dataflows it built
        self._main_returned = False

    @property
    @abstractmethod
    def dataflows(self) -> tuple[Dataflow, ...]:
        """Those that are not complete."""

    @property
    def unbuilt(self) -> dict[int, list[int]]:
        """Dataflows that others have built and this worker has not: number, and by whom."""
        return self._unbuilt.senders

    # From transports

    def post(self, message: AnyMessage) -> None:
        """Leaves a message for this worker, and wakes it."""
        self._mailbox.append(message)
        self.wake()

    def receive(self, message: AnyMessage) -> None:
        """Accepts a message from a link, which keeps the order of messages. The caller calls `turn` afterwards."""
        if self.changes.listening:
            self.changes.unheard.append(message)  # a joiner does not know yet what its peers may say
        else:
            self.conversations[message.sender].hear(message)
        self._mailbox.append(message)

    def hear_changes(self, senders: list[int], dataflow: int, words: list[int], start: int, stop: int) -> None:
        """Accepts progress from boards, at once: nothing in the mailbox has to come first. All of these workers say the
        same. The caller calls `turn` afterwards."""
        flow = self._dataflows.get(dataflow)
        if flow is not None and flow.greeted.issuperset(senders) and self._departed.isdisjoint(senders):
            flow.hear_words(senders, words, start, stop)
            return
        changes = tuple([((words[at + 1], words[at + 2]), words[at + 3]) for at in range(start, stop, 4)])
        for sender in senders:
            self.hear_letter(Progress(sender, dataflow, ProgressBatch(sender, UNNUMBERED, changes)))

    def hear_letter(self, letter: Hello | Progress) -> None:
        """Accepts a greeting, or progress, from a board, at once."""
        if type(letter) is Progress:
            letter.batch.sequence = UNNUMBERED
        self.conversations[letter.sender].hear(letter)
        self.deliver(letter)

    def said_goodbye(self, message: Goodbye) -> None:
        """Accepts a peer's last message."""
        if not self.changes.left:  # else all of them say goodbye to this worker, and not to each other
            self.conversations[message.sender].hear(message)
        self._departed.add(message.sender)

    # Delivery

    def take_mail(self) -> None:
        """Delivers every message in the mailbox."""
        mailbox = self._mailbox
        while mailbox:
            self.deliver(mailbox.popleft())

    def deliver(self, message: AnyMessage) -> None:
        """Delivers one message to its dataflow; holds it if main has not built that yet."""
        if self.changes.listening and self.changes.keep_back(message):
            return
        if type(message) is Progress or type(message) is Data:  # nearly all are
            dataflow = self._dataflows.get(message.dataflow)
            if dataflow is not None:
                dataflow.receive(message)
            else:
                self._deliver_to_dataflow(message)
        elif isinstance(message, Finished):
            self._finished[message.sender] = message.dataflows
            self._check_counts()
        elif isinstance(message, Consumed):
            self.flow_changed(self.flow.acknowledged(self.index, message.size, message.sender))
        elif isinstance(message, Pressure):
            if message.dataflow not in self._ended:
                self.flow.pressed(message.sender, message.on, message.dataflow)
            if message.on:
                self.pressures.look(self.flow.pressing)
            else:
                self.make_room()
        elif isinstance(message, Membership):
            self.changes.heard(message)
        elif isinstance(message, Goodbye | BlocksReturned):
            raise ProtocolError(f"worker {message.sender} sent {message!r}, which concerns its link alone")
        else:
            self._deliver_to_dataflow(message)

    def _deliver_to_dataflow(self, message: Message) -> None:
        dataflow = self._dataflows.get(message.dataflow)
        if dataflow is not None:
            dataflow.receive(message)
        elif self.changes.left:
            return  # it builds no more
        elif message.dataflow not in self._ended:
            self._unbuilt.hold(message, self.index)
            self._check_counts()
        elif isinstance(message, Data):
            self.took(message.sender, message.size)

    def leaves(self, worker: int) -> None:
        """A worker builds no more."""
        self._finished.pop(worker, None)

    def forget(self, worker: int) -> None:
        """A worker has left."""
        self.flow_changed(self.flow.left(self.index, worker))
        self.make_room()

    def _check_counts(self) -> None:
        """GraphMismatch if another worker's main has returned without building what this one has, or the reverse."""
        check_finished(self.index, self.built, self.dataflows, self._finished)
        check_unbuilt(self.index, self.built, self.unbuilt if self._main_returned and not self.changes.left else {})
