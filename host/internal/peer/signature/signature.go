package signature

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Window is how far the time of a signature may be from now, in both directions:
// clocks differ, and requests take time.
const Window = 5 * time.Minute

// maxSignature bounds a signature in bytes. One of this package has about 250.
const maxSignature = 1 << 10

// issuedAtHeader is the signature's header with its time in Unix seconds.
const issuedAtHeader = "iat"

// ErrUnsigned means that a wrapper has no signature.
var ErrUnsigned = errors.New("it is not signed")

// Sign returns the signature of a wrapper, which is one JSON object. It ignores a
// signature in it.
func (k Key) Sign(wrapper []byte, way Route, at time.Time) (string, error) {
	signed, _, err := signedPayload(wrapper, way)
	if err != nil {
		return "", err
	}
	opt := (&jose.SignerOptions{}).WithHeader(issuedAtHeader, at.Unix()).WithHeader("kid", k.public.id)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: k.private}, opt)
	if err != nil {
		return "", err
	}
	signature, err := signer.Sign(signed)
	if err != nil {
		return "", err
	}
	return signature.DetachedCompactSerialize()
}

// Verify returns why the key's holder has not just signed a wrapper for this
// route; [ErrUnsigned] when it has no signature.
func (p PublicKey) Verify(wrapper []byte, way Route, now time.Time) error {
	signed, text, err := signedPayload(wrapper, way)
	switch {
	case err != nil:
		return err
	case text == "":
		return ErrUnsigned
	case len(text) > maxSignature:
		return fmt.Errorf("its signature has %d bytes, at most %d", len(text), maxSignature)
	case p.key == "":
		return errors.New("there is no key to verify it with")
	}
	signature, err := jose.ParseDetached(text, signed, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil || len(signature.Signatures) != 1 {
		return errors.New("its signature is not a detached compact JWS with alg EdDSA")
	}
	head := signature.Signatures[0].Protected
	if head.KeyID != p.id {
		return fmt.Errorf("it is signed with another key than %s, one of id %.43q", p, head.KeyID)
	}
	if err := signature.DetachedVerify(signed, ed25519.PublicKey(p.key)); err != nil {
		return errors.New("its signature does not match: it was changed, or signed for another swarm or route")
	}
	return checkAge(head.ExtraHeaders[issuedAtHeader], now)
}

// checkAge checks the time of a signature.
func checkAge(at any, now time.Time) error {
	seconds, ok := at.(float64)
	if number, isNumber := at.(json.Number); isNumber {
		n, err := number.Float64()
		seconds, ok = n, err == nil
	}
	if !ok || seconds < 0 || seconds > 1<<40 {
		return errors.New("its signature does not say when it was made (iat)")
	}
	if age := now.Sub(time.Unix(int64(seconds), 0)); age > Window || age < -Window {
		return fmt.Errorf("it was signed %s ago by the clock here, at most %s count; look at both clocks", age.Round(time.Second), Window)
	}
	return nil
}
