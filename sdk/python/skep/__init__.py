"""Agents in Python for skep, which runs them as processes of their own.

    import skep

    class Greeter(skep.Agent):
        def turn(self, t):
            if t.message.type == "request":
                t.send_response(t.message.sender.name, "Re: " + t.message.subject, "hello")

    skep.serve(Greeter(), {"name": "greeter", "version": "1.0.0"})

A process lives on between turns, and several turns of a tenant may run in it at
once, each in a thread of its own. What must last goes into the turn's state.
"""

from .agent import Agent
from .error import CODES, Abort, Error
from .host import Host, Pending
from .ops import OPS
from .serve import serve
from .span import Span
from .turn import ActionCall, Address, Entry, Message, Turn

__all__ = [
    "CODES", "OPS", "Abort", "ActionCall", "Address", "Agent", "Entry", "Error", "Host", "Message", "Pending", "Span", "Turn", "serve",
]
