"""What outlives a connection: the outbox, open questions, messages that were seen."""

import asyncio
import json
import sys
import uuid

import control
from agent import act
from message import new

FINAL = {"completed", "failed", "rejected"}


def is_final(m):
    """is_final finds whether no other answer to the same question follows."""
    return m["message_type"] != "task_response" or m["payload"].get("status") in FINAL


class Node:
    """A hub or a spoke. A subclass has route, which finds a recipient's connection."""

    def __init__(self, options):
        self.options = options
        self.outbox = {}  # sent and not acknowledged: id to message, in order
        self.questions = {}  # id to queue of answers
        self.seen = set()  # ids of messages that were taken
        self.busy = set()
        self.acks = 0
        self.sending = asyncio.Lock()  # keeps the order between post and resend
        self.acked = asyncio.Condition()

    def report(self, event, **members):
        print(json.dumps({"event": event} | members), flush=True)

    def sender(self, agent_id=None):
        return {"agent_id": agent_id or self.options.agent_id[0], "agent_name": "Peer in Python", "capabilities": ["echo", "count"]}

    def acknowledged(self, message_id):
        if self.outbox.pop(message_id, None):
            self.acks += 1
            self.wake()

    def wake(self):
        async def notify():
            async with self.acked:
                self.acked.notify_all()

        self.start(notify())

    def answered(self, m):
        """answered hands an answer to its question, and returns whether one was open."""
        parent = m.get("parent_message_id")
        self.acknowledged(parent)
        if queue := self.questions.get(parent):
            queue.put_nowait(m)
        return queue is not None

    def start(self, work):
        task = asyncio.ensure_future(work)
        self.busy.add(task)
        task.add_done_callback(self.busy.discard)

    async def settled(self):
        """settled waits until the agent has done what it was asked."""
        while pending := self.busy - {asyncio.current_task()}:
            await asyncio.wait(pending)

    async def take(self, connection, m):
        """take acknowledges a message and lets the agent do it once."""
        if m["message_type"] not in control.UNACKNOWLEDGED:
            await connection.tell(control.ACK, {"message_id": m["message_id"]}, m["message_id"])
        if m["message_id"] in self.seen:
            return self.report("repeated", id=m["message_id"])
        self.seen.add(m["message_id"])
        if not self.answered(m):
            self.report("took", message=m)
            self.start(self._act(connection, m))

    async def _act(self, connection, m):
        try:
            await act(self, connection, m)
        except (TypeError, ValueError, AttributeError, OSError) as e:
            self.report("fault", of=m["message_id"], reason=f"{type(e).__name__}: {e}")

    async def reply(self, connection, m, kind, payload):
        more = {"parent_message_id": m["message_id"]}
        if "conversation_id" in m:
            more["conversation_id"] = m["conversation_id"]
        own = m["recipient"].get("agent_id") if m.get("recipient", {}).get("agent_id") in self.options.agent_id else None
        await self.post(new(kind, self.sender(own), m["sender"]["agent_id"], payload, **more), connection)

    async def post(self, m, connection=None):
        """post puts a message into the outbox and sends it, if it can be now."""
        self.outbox[m["message_id"]] = m
        async with self.sending:
            connection = self.route(m) or connection
            if connection and not connection.writer.is_closing():
                try:
                    await connection.send(m)
                except OSError:
                    pass  # it is sent again by the next connection

    async def resend(self, connection):
        """resend sends what is not acknowledged once more, in order, with the same ids."""
        async with self.sending:
            for m in list(self.outbox.values()):
                if self.route(m) is connection:
                    await connection.send(m)

    async def do(self, job):
        """do does a job of the test and returns what came of it."""
        if "flood" in job:
            return await self._flood(job)
        if "send" in job:
            return await self._ask(job)
        if "raw" in job:
            connection = self.route({"recipient": {"agent_id": job.get("to", "")}})
            connection.writer.write(bytes.fromhex(job["raw"]))
            await connection.writer.drain()
            return {}
        if "drop" in job:
            self.route({"recipient": {"agent_id": job.get("to", "")}}).writer.transport.abort()
            return {}
        if "close" in job:
            await self.route({"recipient": {"agent_id": job.get("to", "")}}).close("the job is done")
            return {}
        raise ValueError(f"a job without send, flood, raw, drop or close: {job}")

    def message_of(self, job, **payload):
        given = dict(job["send"])
        kind, body = given.pop("message_type"), given.pop("payload", {}) | payload
        recipient = given.pop("recipient", job.get("to", self.options.to))
        return new(kind, self.sender(job.get("from")), recipient, body) | given

    async def _ask(self, job):
        m = self.message_of(job)
        self.questions[m["message_id"]] = queue = asyncio.Queue()
        answers = []
        try:
            await self.post(m)
            while job.get("answers", True):
                answers.append(await asyncio.wait_for(queue.get(), self.options.patience))
                if is_final(answers[-1]):
                    break
            async with asyncio.timeout(self.options.patience), self.acked:
                await self.acked.wait_for(lambda: m["message_id"] not in self.outbox)
        finally:
            del self.questions[m["message_id"]]
        return {"id": m["message_id"], "answers": answers}

    async def _flood(self, job):
        """_flood sends many messages on one connection, numbered, without waiting for
        answers, and waits for every acknowledgement. It returns the ids' count."""
        conversation, window, number = str(uuid.uuid4()), job.get("window", 64), job["flood"]
        before = self.acks
        for i in range(number):
            m = self.message_of(job, description=str(i))
            if job.get("one_conversation"):
                m["conversation_id"] = conversation
            async with asyncio.timeout(self.options.patience), self.acked:
                await self.acked.wait_for(lambda: len(self.outbox) < window)
            await self.post(m)
        async with asyncio.timeout(self.options.patience), self.acked:
            await self.acked.wait_for(lambda: not self.outbox)
        return {"acknowledged": self.acks - before}


async def read_jobs(node):
    """read_jobs does the jobs on standard input, one a line; each ends by "did"."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            node.report("did", **await node.do(json.loads(line)))
        except Exception as e:  # a job of any kind may fail in any way
            node.report("did", fault=f"{type(e).__name__}: {e}")
