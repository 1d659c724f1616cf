"""Serves an agent to the host that started the process."""

import concurrent.futures
import sys
import threading
import traceback

import grpc

from . import meet, text, wire
from .error import CODES, Abort, Error
from .host import Host, Stub
from .turn import ActionCall, Turn

_THREADS = 200  # the host bounds the turns that run at once
_SIZES = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_HEALTHY = b"\x08\x01"  # SERVING, as gRPC's health service says it
_OK, _FAILED = 0, 1


def serve(agent, descriptor):
    """Serves the agent until the host ends the process. The descriptor is that of
    ABI.md, section 10, without its abi."""
    meet.expected()
    announce = meet.announcer()
    identity, over = meet.Identity(), threading.Event()
    served = _Served(agent, {"abi": 1, **descriptor}, identity, over)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(_THREADS), options=_SIZES)
    server.add_generic_rpc_handlers(served.handlers())
    path = meet.socket()
    server.add_secure_port("unix:" + path, identity.server())
    server.start()
    announce(path, identity.line)
    over.wait()
    server.stop(1).wait()


class _Served:
    """The services of the process."""

    def __init__(self, agent, descriptor, identity, over):
        self._agent, self._descriptor, self._identity, self._over = agent, descriptor, identity, over
        self._broker, self._stub, self._meeting = meet.Broker(), None, threading.Lock()

    def handlers(self):
        def plain(answer):
            return grpc.unary_unary_rpc_method_handler(lambda request, _context: answer())

        def messages(do, request):
            return grpc.unary_unary_rpc_method_handler(do, request.FromString, wire.Outcome.SerializeToString)

        broker = grpc.stream_stream_rpc_method_handler(self._broker.stream, meet.Place.FromString, meet.Place.SerializeToString)
        service = grpc.method_handlers_generic_handler
        return (
            service("skep.plugin.v1.Agent", {
                "Describe": messages(self._describe, wire.StartRequest), "Warm": messages(self._warm, wire.StartRequest),
                "Turn": messages(self._turn, wire.CallRequest), "Action": messages(self._action, wire.CallRequest),
            }),
            service("plugin.GRPCBroker", {"StartStream": broker}),
            service("plugin.GRPCController", {"Shutdown": plain(self._shutdown)}),
            service("grpc.health.v1.Health", {"Check": plain(lambda: _HEALTHY)}),
        )

    def _shutdown(self):
        self._over.set()
        return b""

    def _reach(self, number):
        with self._meeting:
            if self._stub is None:
                self._stub = Stub(self._identity.channel(self._broker.find(number), _SIZES))

    def _describe(self, request, _context):
        self._reach(request.broker_id)
        return wire.Outcome(output=text.encode(self._descriptor))

    def _warm(self, request, _context):
        self._reach(request.broker_id)

        def warm():
            self._agent.warm(Host(self._stub, request.session))
            return b""

        return _outcome(warm)

    def _turn(self, request, _context):
        def turn():
            t = Turn(self._stub, request.session, request.clock, request.input)
            self._agent.turn(t)
            return t.result()

        return _outcome(turn)

    def _action(self, request, _context):
        def action():
            answer = self._agent.action(ActionCall(self._stub, request.session, request.clock, request.input))
            return answer if isinstance(answer, bytes) else text.encode(answer)

        return _outcome(action)


def _outcome(do):
    """How a call of the agent ends."""
    try:
        return wire.Outcome(status=_OK, output=do())
    except Error as failed:
        return wire.Outcome(status=_FAILED, output=failed.body())
    except Abort as gave_up:
        return wire.Outcome(abort=wire.Abort(code=gave_up.code, message=gave_up.message))
    except Exception as broken:  # the host tells it from a failure that was meant
        traceback.print_exc(file=sys.stderr)
        message = "%s: %s" % (type(broken).__name__, broken)
        return wire.Outcome(abort=wire.Abort(code=CODES.index("INTERNAL"), message=message))
