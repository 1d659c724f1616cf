"""did:key and did:web: the names of agents. The document uses did:web without a word
about it, and has no rule for other URIs."""

import dataclasses
import json
import urllib.parse

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from jws import algorithm_of, decode, new_key

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_UNCOMPRESSED = (serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


@dataclasses.dataclass
class Signer:
    """Who signs."""

    did: str
    key: object
    key_id: str
    kid: str | None
    alg: str


def _to_base58(data):
    n, out = int.from_bytes(data, "big"), ""
    while n:
        n, r = divmod(n, 58)
        out = ALPHABET[r] + out
    return out


def _from_base58(text):
    n = 0
    for c in text:
        n = n * 58 + ALPHABET.index(c)
    return n.to_bytes((n.bit_length() + 7) // 8, "big")


def to_multikey(key):
    """to_multikey spells a public key: its multicodec and its bytes."""
    if algorithm_of(key) == "EdDSA":
        return "z" + _to_base58(b"\xed\x01" + key.public_bytes_raw())
    return "z" + _to_base58(b"\x80\x24" + key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint))


def from_multikey(text):
    data = _from_base58(text.removeprefix("z"))
    if data[:2] == b"\xed\x01":
        return ed25519.Ed25519PublicKey.from_public_bytes(data[2:])
    if data[:2] == b"\x80\x24":
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), data[2:])
    raise ValueError("a key of another kind")


def from_jwk(jwk):
    x = decode(jwk["x"])
    if jwk.get("crv") == "Ed25519":
        return ed25519.Ed25519PublicKey.from_public_bytes(x)
    if jwk.get("crv") == "P-256":
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b"\x04" + x + decode(jwk["y"]))
    raise ValueError("a key of another kind")


def _private(jwk):
    d = decode(jwk["d"])
    return ed25519.Ed25519PrivateKey.from_private_bytes(d) if jwk["crv"] == "Ed25519" else ec.derive_private_key(int.from_bytes(d, "big"), ec.SECP256R1())


def new_signer(alg="ES256", key_file=None, did=None, no_kid=False):
    if key_file:
        with open(key_file, encoding="utf-8") as f:
            key = _private(json.load(f))
    else:
        key = new_key(alg)
    multikey = to_multikey(key.public_key())
    name = did or f"did:key:{multikey}"
    key_id = f"{name}#{multikey if name.startswith('did:key:') else 'key-1'}"
    return Signer(name, key, key_id, None if no_kid else key_id, algorithm_of(key))


def document_of(signer, service=None):
    """document_of is the DID document of a signer, with its key as a Multikey."""
    method = {"id": signer.key_id, "type": "Multikey", "controller": signer.did, "publicKeyMultibase": to_multikey(signer.key.public_key())}
    document = {
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
        "id": signer.did,
        "verificationMethod": [method],
        "assertionMethod": [signer.key_id],
    }
    return document | ({"service": [{"id": f"{signer.did}#messages", **service}]} if service else {})


def address_of(did, scheme):
    """address_of is where the document of a did:web is."""
    host, *path = (urllib.parse.unquote(part) for part in did.removeprefix("did:web:").split(":"))
    return f"{scheme}://{host}/{'/'.join(path) or '.well-known'}/did.json"


async def document_for(did, net):
    reply = await net.request("GET", address_of(did, net.scheme))
    document = json.loads(reply.body) if reply.status == 200 else {}
    if document.get("id") != did:
        raise ValueError(f"the document of {did} has status {reply.status} and names {document.get('id')}")
    return document


async def keys_of(did, kid, net):
    """keys_of returns the keys with which a DID may assert something; kid chooses one."""
    if kid is not None and kid.partition("#")[0] != did:
        raise ValueError(f"the key {kid} is not one of {did}")
    if did.startswith("did:key:"):
        return [from_multikey(did.removeprefix("did:key:"))]
    if not did.startswith("did:web:"):
        raise ValueError(f"{did} is neither did:web nor did:key")
    document = await document_for(did, net)

    def full(key_id):
        return did + key_id if key_id.startswith("#") else key_id

    listed = document.get("assertionMethod", [])
    wanted = [full(m if isinstance(m, str) else m["id"]) for m in listed]
    methods = document.get("verificationMethod", []) + [m for m in listed if isinstance(m, dict)]
    return [
        from_jwk(m["publicKeyJwk"]) if "publicKeyJwk" in m else from_multikey(m["publicKeyMultibase"])
        for m in methods
        if full(m["id"]) in wanted and kid in (None, full(m["id"]))
    ]
