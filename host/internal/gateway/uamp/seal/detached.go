package seal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// ErrSignature is returned for a signature that does not count.
var ErrSignature = errors.New("the signature does not count")

// failure is why a signature or a token does not count.
type failure struct {
	of  error // ErrSignature or ErrToken
	why string
}

func (f failure) Error() string { return f.of.Error() + ": " + f.why }

func (f failure) Unwrap() error { return f.of }

// fail returns why a signature does not count.
func fail(format string, args ...any) error {
	return failure{ErrSignature, fmt.Sprintf(format, args...)}
}

// Sign returns the detached signature over a hash (U-024).
func (k Key) Sign(sum [sha256.Size]byte) (string, error) {
	jws, err := k.sign([]byte(spellings(sum)[0]), nil)
	if err != nil {
		return "", err
	}
	return jws.DetachedCompactSerialize()
}

// sign signs a payload with the key's id, and other members in the header.
func (k Key) sign(payload []byte, header map[jose.HeaderKey]any) (*jose.JSONWebSignature, error) {
	opt := &jose.SignerOptions{ExtraHeaders: header}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: k.public.algorithm(), Key: k.private}, opt.WithHeader("kid", k.public.ID))
	if err != nil {
		return nil, err
	}
	return signer.Sign(payload)
}

// spellings are the payloads that mean a hash (U-025). The first one is ours, the last one is
// printed in the document's section 6.3.
func spellings(sum [sha256.Size]byte) [3]string {
	text := hex.EncodeToString(sum[:])
	return [...]string{`{"sha256":"` + text + `"}`, `{"sha256": "` + text + `"}`, `{ "sha256": "` + text + `" }`}
}

// Header is the header of a signature, unverified.
type Header struct {
	// KeyID is a DID URL, empty for none.
	KeyID string
	alg   algorithm
	typ   string
}

// algorithm is one of [algorithms].
type algorithm = jose.SignatureAlgorithm

// maxKeys is how many keys are tried for a signature without a key id (U-027).
const maxKeys = 8

// ReadHeader reads the header of a detached signature.
func ReadHeader(sig string) (h Header, err error) {
	_, h, err = parse(sig, nil)
	return h, err
}

// parse reads a detached signature, to be verified over a payload.
func parse(sig string, payload []byte) (*jose.JSONWebSignature, Header, error) {
	if parts := strings.Split(sig, "."); len(parts) != 3 || parts[1] != "" {
		return nil, Header{}, fail("it is not a detached JWS, header..signature")
	}
	if payload == nil {
		payload = []byte{}
	}
	if !isCanonical(sig) {
		return nil, Header{}, errCanonical
	}
	jws, err := jose.ParseDetached(sig, payload, algorithms)
	if err != nil {
		return nil, Header{}, fail("it is not a detached compact JWS with alg ES256 or EdDSA")
	}
	h, err := headerOf(jws)
	return jws, h, err
}

// parseCompact reads a signature with its payload.
func parseCompact(text string) (*jose.JSONWebSignature, Header, error) {
	jws, err := jose.ParseSignedCompact(text, algorithms)
	if err != nil {
		return nil, Header{}, fail("it is not a compact JWS with alg ES256 or EdDSA")
	}
	if !isCanonical(text) {
		return nil, Header{}, errCanonical
	}
	h, err := headerOf(jws)
	return jws, h, err
}

// errCanonical is returned for a JWS that could be written in another way, so that a repeat of it
// would not be one.
var errCanonical = fail("its parts are not in base64url without line breaks and spare bits")

// isCanonical reports whether each part of a compact JWS is written as an encoder writes it
// (https://www.rfc-editor.org/rfc/rfc7515#section-2). Decoders pass over line breaks, and over the
// bits behind the last byte.
func isCanonical(text string) bool {
	for part := range strings.SplitSeq(text, ".") {
		if raw, err := base64.RawURLEncoding.DecodeString(part); err != nil || base64.RawURLEncoding.EncodeToString(raw) != part {
			return false
		}
	}
	return true
}

// headerOf returns the header of the one signature, which must not ask for extensions.
func headerOf(jws *jose.JSONWebSignature) (h Header, err error) {
	if len(jws.Signatures) != 1 {
		return h, fail("it has not one signature")
	}
	head := jws.Signatures[0].Protected
	for _, name := range []jose.HeaderKey{"crit", "b64"} {
		if _, has := head.ExtraHeaders[name]; has {
			return h, fail("its header has %s, which asks for an extension", name)
		}
	}
	typ, _ := head.ExtraHeaders["typ"].(string)
	return Header{head.KeyID, algorithm(head.Algorithm), typ}, nil
}

// Verify returns which key has signed one of the hashes. Keys of another type than the
// signature's algorithm, and with another id than its key id, do not count.
func Verify(sig string, sums iter.Seq[[sha256.Size]byte], keys []PublicKey) (PublicKey, error) {
	_, h, err := parse(sig, nil)
	if err != nil {
		return PublicKey{}, err
	}
	keys = h.candidates(keys)
	if len(keys) == 0 {
		return PublicKey{}, fail("its key %.200q is none of the sender's", h.KeyID)
	}
	for sum := range sums {
		for _, payload := range spellings(sum) {
			jws, _, err := parse(sig, []byte(payload))
			if err != nil {
				return PublicKey{}, err
			}
			for _, k := range keys {
				if jws.DetachedVerify([]byte(payload), k.key) == nil {
					return k, nil
				}
			}
		}
	}
	return PublicKey{}, fail("it was made with another key, or the envelope was changed")
}

// candidates are the keys that may have made the signature.
func (h Header) candidates(keys []PublicKey) (list []PublicKey) {
	for _, k := range keys {
		if k.key != nil && k.algorithm() == h.alg && (h.KeyID == "" || h.KeyID == k.ID) && len(list) < maxKeys {
			list = append(list, k)
		}
	}
	return list
}
