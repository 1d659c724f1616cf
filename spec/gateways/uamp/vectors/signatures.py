"""Writes vectors of signatures by Python's json and cryptography:
python3 signatures.py > signatures-python.json"""
import base64, hashlib, json, uuid
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature


def encode(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


# RFC 8037, appendix A.1, and RFC 7515, appendix A.3.
ED = ed25519.Ed25519PrivateKey.from_private_bytes(decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"))
EC = ec.derive_private_key(int.from_bytes(decode("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"), "big"), ec.SECP256R1())
PUBLIC = {
    "EdDSA": {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
    "ES256": {"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"},
}


def sign(alg, data):
    if alg == "EdDSA":
        return ED.sign(data)
    r, s = decode_dss_signature(EC.sign(data, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


FROM = "did:web:client.example"
CONTENTS = ["2+2", 'ä "quoted" \\ / \b\u0007\u001f\u007f\u2028 😀', "", '{"a": [1, 2]}']
EXTS = [None, {"！": 1.0, "😀": 1e21, "ﬀ": -0.0, "a": 1e-06, "B": 0.1, "": None},
        {"x-trace": "b3:1", "nested": {"b": [True, {"z": 1, "a": 9007199254740993}], "a": 1.50}},
        {"n": [10**30, 1e16, 1e-5, 123456789.0]}]
out = []
for alg in PUBLIC:
    for i, ext in enumerate(EXTS):
        env = {"to": ["did:web:calc.example"], "id": f"urn:uuid:{uuid.uuid4()}", "ts": "2025-07-10T10:00:00Z", "from": FROM,
               "intent": "ask", "body": {"type": "text/plain", "content": CONTENTS[i]}}
        if ext:
            env["ext"] = ext
        for ascii in (False, True):
            text = json.dumps(env, sort_keys=True, separators=(",", ":"), ensure_ascii=ascii)
            digest = hashlib.sha256(text.encode()).hexdigest()
            header = encode(json.dumps({"alg": alg, "kid": FROM + "#k1"}).encode())
            payload = encode(json.dumps({"sha256": digest}).encode())
            sig = header + ".." + encode(sign(alg, f"{header}.{payload}".encode()))
            out.append({"by": "json and cryptography", "alg": alg, "sum": digest, "key": PUBLIC[alg],
                        "envelope": json.dumps({**env, "sig": sig}, ensure_ascii=ascii)})
print(json.dumps(out, indent=1, ensure_ascii=False))
