"""Signatures of envelopes and manifests: §6.3 and §8.

The detached payload is not sent, so its bytes are a guess: the document prints it with
spaces and leaves the digest's spelling out.
"""

import base64
import hashlib
import hmac
import json
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from canonical import digest

DIGESTS = {"hex": bytes.hex, "prefixed": lambda d: "sha256:" + d.hex(), "base64url": lambda d: encode(d)}
PAYLOADS = {
    "compact": '{"sha256":"%s"}',
    "spaced": '{"sha256": "%s"}',
    "printed": '{ "sha256": "%s" }',
}


def encode(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode(text):
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if encode(data) != text:
        raise ValueError("this is not base64url without padding")
    return data


def new_key(alg):
    return ed25519.Ed25519PrivateKey.generate() if alg == "EdDSA" else ec.generate_private_key(ec.SECP256R1())


def algorithm_of(key):
    return "EdDSA" if isinstance(key, (ed25519.Ed25519PrivateKey, ed25519.Ed25519PublicKey)) else "ES256"


def _sign(key, data):
    if algorithm_of(key) == "EdDSA":
        return key.sign(data)
    size = key.key_size // 8
    r, s = decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256() if size == 32 else hashes.SHA384())))
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")


def _verify(alg, key, signature, data):
    if alg != algorithm_of(key):
        raise ValueError(f"the key is not one for {alg}")
    if alg == "EdDSA":
        return key.verify(signature, data)
    if len(signature) != 64:
        raise ValueError("a signature of ES256 has 64 bytes")
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    return key.verify(encode_dss_signature(r, s), data, ec.ECDSA(hashes.SHA256()))


def _header(signer, more):
    head = {"alg": signer.alg, **({"kid": signer.kid} if signer.kid else {}), **more}
    return encode(json.dumps(head).encode())


def compact(payload, signer, **more):
    """compact signs a payload. Header members may replace the signer's."""
    head, body = _header(signer, more), encode(payload)
    if more.get("b64") is False:
        return head, "", encode(_sign(signer.key, head.encode() + b"." + payload))
    return head, body, encode(_sign(signer.key, f"{head}.{body}".encode()))


def payload_of(text, how, leave=("sig",)):
    return (PAYLOADS[how["payload"]] % DIGESTS[how["hash"]](digest(how["canonical"], text, leave))).encode()


def seal(text, signer, how, leave=("sig",), **header):
    """seal returns the sig of an envelope's text. how has canonical, hash, payload and form."""
    if how["form"] == "unencoded":
        header |= {"b64": False, "crit": ["b64"]}
    head, body, signature = compact(payload_of(text, how, leave), signer, **header)
    return ".".join([head, body if how["form"] == "attached" else "", signature])


def confused(alg, text, signer, how):
    """A sig whose algorithm is none, HS256 with the public key as its secret, or the other one's name."""
    if alg == "swapped":
        return seal(text, signer, how, alg="EdDSA" if signer.alg == "ES256" else "ES256")
    head = _header(signer, {"alg": alg})
    if alg == "none":
        return head + ".."
    secret = signer.key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    signed = f"{head}.{encode(payload_of(text, how))}".encode()
    return f"{head}..{encode(hmac.digest(secret, signed, hashlib.sha256))}"


def _open_header(head):
    header = json.loads(decode(head))
    if header.get("alg") not in ("ES256", "EdDSA"):
        raise ValueError(f"the algorithm {header.get('alg')} is not allowed")
    critical = header.get("crit", [])
    if critical not in ([], ["b64"]) or ("b64" in header) != (critical == ["b64"]):
        raise ValueError(f"{critical} is critical and not known")
    return header


async def open_sig(text, sig, keys_for):
    """open_sig verifies the sig of an envelope's text with the keys that keys_for returns
    for its kid, and returns which spelling it was made with."""
    head, payload, signature = sig.split(".")
    if payload or not signature:
        raise ValueError("sig is no detached JWS with a signature")
    header = _open_header(head)
    for key in await keys_for(header.get("kid")):
        for form, data in _spellings(text):
            part = data if header.get("b64") is False else encode(data).encode()
            try:
                _verify(header["alg"], key, decode(signature), head.encode() + b"." + part)
                return form
            except InvalidSignature:
                continue
    raise ValueError("no key of the sender has made the sig")


def _spellings(text):
    for canonical in ("literal", "jcs"):
        try:
            found = digest(canonical, text)
        except OverflowError:
            continue  # a number that RFC 8785 cannot write
        for name, spell in DIGESTS.items():
            for payload, form in PAYLOADS.items():
                yield {"canonical": canonical, "hash": name, "payload": payload}, (form % spell(found)).encode()


async def open_compact(jws, keys_for):
    """open_compact verifies what is sent with its signature, and returns its claims."""
    head, body, signature = jws.strip().split(".")
    header, claims = _open_header(head), json.loads(decode(body))
    for key in await keys_for(header.get("kid"), claims):
        try:
            _verify(header["alg"], key, decode(signature), f"{head}.{body}".encode())
            return claims
        except (InvalidSignature, ValueError):
            continue
    raise ValueError("no key of the issuer has signed it")


def seal_token(claims, signer):
    return ".".join(compact(json.dumps(claims).encode(), signer))


async def open_token(token, audience, keys_for):
    """open_token verifies a capability token: §6.2 names aud, scope and exp."""
    claims = await open_compact(token, keys_for)
    if audience not in ([claims["aud"]] if isinstance(claims["aud"], str) else claims["aud"]):
        raise ValueError(f"the token is for {claims['aud']}")
    if claims["exp"] <= time.time():
        raise ValueError("the token has expired")
    return claims["scope"]
