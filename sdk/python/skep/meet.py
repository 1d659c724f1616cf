"""How a process and the host that started it meet: a line on standard output, a
certificate of each side, and the broker, which tells where the host listens."""

import base64
import datetime
import os
import sys
import tempfile
import threading

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

COOKIE = ("SKEP_PLUGIN", "3f1d27c7-skep-agent")
VERSION = "1"
_NAME = "localhost"
_PATIENCE = 5  # seconds that the broker keeps a number


def _place():
    """The message in which the broker tells a number and an address."""
    about = descriptor_pb2.FileDescriptorProto(name="place.proto", syntax="proto3")
    message = about.message_type.add(name="Place")
    kinds = descriptor_pb2.FieldDescriptorProto
    for number, (name, kind) in enumerate((("id", kinds.TYPE_UINT32), ("network", kinds.TYPE_STRING), ("address", kinds.TYPE_STRING)), 1):
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    made = descriptor_pool.DescriptorPool().AddSerializedFile(about.SerializeToString())
    return message_factory.GetMessageClass(made.message_types_by_name["Place"])


Place = _place()


def expected():
    """Leaves a process that no host has started."""
    if os.environ.get(COOKIE[0]) == COOKIE[1] and VERSION in os.environ.get("PLUGIN_PROTOCOL_VERSIONS", "").split(","):
        return
    sys.exit('This is an agent of skep. It is not run by hand: name it in swarm.toml, as in source = "exec:./agent".')


class Identity:
    """The process's key and certificate, and the host's certificate. Each side takes
    no other."""

    def __init__(self):
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
        now = datetime.datetime.now(datetime.timezone.utc)
        made = (
            x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=1)).not_valid_after(now + datetime.timedelta(days=10_000))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(_NAME)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(key, hashes.SHA256())
        )
        self.key = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        self.certificate = made.public_bytes(serialization.Encoding.PEM)
        self.line = base64.b64encode(made.public_bytes(serialization.Encoding.DER)).decode().rstrip("=")
        self.host = os.environ["PLUGIN_CLIENT_CERT"].encode()

    def server(self):
        """What the process serves with."""
        return grpc.ssl_server_credentials([(self.key, self.certificate)], self.host, require_client_auth=True)

    def channel(self, address, options):
        """A channel to the host, which listens at a Unix socket."""
        keys = grpc.ssl_channel_credentials(self.host, self.key, self.certificate)
        names = [("grpc.ssl_target_name_override", _NAME), ("grpc.default_authority", _NAME)]
        return grpc.secure_channel("unix:" + address, keys, names + options)


class Broker:
    """Where the host listens, by the numbers it gives."""

    def __init__(self):
        self._places, self._changed = {}, threading.Condition()

    def stream(self, requests, _context):
        """Takes what the host says, and says nothing."""
        for place in requests:
            with self._changed:
                self._places[place.id] = place.address
                self._changed.notify_all()
        yield from ()

    def find(self, number):
        """The address that belongs to a number."""
        with self._changed:
            if not self._changed.wait_for(lambda: number in self._places, _PATIENCE):
                raise RuntimeError("the host did not say where it listens")
            return self._places[number]


def socket():
    """A path for the process's socket."""
    return os.path.join(tempfile.mkdtemp(dir=os.environ.get("PLUGIN_UNIX_SOCKET_DIR")), "agent")


def announcer():
    """Keeps standard output for the one line that is for the host. Everything else
    that is printed goes to standard error, and so to the operator's log."""
    line = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def announce(path, certificate):
        with line:
            line.write("|".join(("1", VERSION, "unix", path, "grpc", certificate)) + "\n")

    return announce
