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
        self.outbox = {}  # not acknowledged: id to message
        self.questions = {}  # not answered: id to queue of answers
        self.kept = {}  # not acknowledged or not answered: id to message, in order
        self.seen = set()  # ids of messages that were taken
        self.busy = set()
        self.acks = 0
        self.sending = asyncio.Lock()  # keeps the order between post and resend
        self.acked = asyncio.Condition()
        self.released = asyncio.Semaphore(0)  # tasks that the agent holds may end

    def report(self, event, **members):
        print(json.dumps({"event": event} | members), flush=True)

    def sender(self, agent_id=None):
        return {"agent_id": agent_id or self.options.agent_id[0], "agent_name": "Peer in Python", "capabilities": ["echo", "count"]}

    def acknowledged(self, message_id):
        if self.outbox.pop(message_id, None):
            self.acks += 1
            self.wake()
        if message_id not in self.questions:
            self.kept.pop(message_id, None)

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
        self.outbox[m["message_id"]] = self.kept[m["message_id"]] = m
        async with self.sending:
            connection = self.route(m) or connection
            if connection and not connection.writer.is_closing():
                try:
                    await connection.send(m)
                except OSError:
                    pass  # it is sent again by the next connection

    async def resend(self, connection):
        """resend sends once more what is not acknowledged, and questions that are not
        answered, in order and with the same ids."""
        async with self.sending:
            for m in list(self.kept.values()):
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
        if "release" in job:
            self.released.release()
            return {}
        raise ValueError(f"a job without send, flood, raw, drop, close or release: {job}")

    def message_of(self, job, **payload):
        given = dict(job["send"])
        kind, body = given.pop("message_type"), given.pop("payload", {}) | payload
        recipient = given.pop("recipient", job.get("to", self.options.to))
        return new(kind, self.sender(job.get("from")), recipient, body) | given

    async def _ask(self, job):
        m = self.message_of(job)
        if not job.get("answers", True):
            await self.post(m)
            async with asyncio.timeout(self.options.patience), self.acked:
                await self.acked.wait_for(lambda: m["message_id"] not in self.outbox)
            return {"id": m["message_id"]}
        self.questions[m["message_id"]] = asyncio.Queue()
        await self.post(m)
        return {"id": m["message_id"], "answers": await self._answers(m)}

    async def _answers(self, m):
        """_answers waits for all answers to a question."""
        answers, queue = [], self.questions[m["message_id"]]
        try:
            while not answers or not is_final(answers[-1]):
                answers.append(await asyncio.wait_for(queue.get(), self.options.patience))
        finally:
            del self.questions[m["message_id"]]
            self.kept.pop(m["message_id"], None)
            self.wake()
        return answers

    async def _flood(self, job):
        """_flood sends many questions of one conversation and waits for all answers. #N in
        a message is its number, #P the one before. It returns how many answers have the
        text that is wanted, and the first that has not."""
        conversation, good, bad, waiting = str(uuid.uuid4()), 0, [], []
        for i in range(job["flood"]):
            text = json.dumps(job["send"]).replace("#N", str(i)).replace("#P", str(i - 1))
            m = self.message_of(job | {"send": json.loads(text)}) | {"conversation_id": conversation}
            async with asyncio.timeout(self.options.patience), self.acked:
                await self.acked.wait_for(lambda: len(self.questions) < job.get("window", 64))
            self.questions[m["message_id"]] = asyncio.Queue()
            waiting.append(asyncio.ensure_future(self._answers(m)))
            await self.post(m)
            if i in job.get("drop_at", []) and (connection := self.route(m)):
                connection.writer.transport.abort()
        for answers in await asyncio.gather(*waiting):
            if job["want"] in json.dumps(answers[-1]):
                good += 1
            else:
                bad.append(answers[-1])
        return {"good": good, "bad": bad[:1]}


async def read_jobs(node):
    """read_jobs does the jobs on standard input, one a line; each ends by "did"."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            node.report("did", **await node.do(json.loads(line)))
        except Exception as e:  # a job of any kind may fail in any way
            node.report("did", fault=f"{type(e).__name__}: {e}")
