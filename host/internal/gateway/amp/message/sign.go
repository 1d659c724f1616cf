package message

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"

	"skep/host/internal/gateway/wire"
)

// algorithm is the only one of a signature.
const algorithm = "HMAC-SHA256"

// ErrSignature is returned for a message that was not made with the key.
var ErrSignature = errors.New("the signature is not of this message and key")

// canonicalDepth bounds the levels of a message that was read before.
const canonicalDepth = 10_000

// signedForm is what a signature is of: the canonical form of the message without its
// headers.signature (M-075).
func signedForm(object []byte, form wire.Form) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	if headers, has := members["headers"]; has {
		without, err := wire.Canonical(headers, form, canonicalDepth, "signature")
		if err != nil {
			return nil, err
		}
		members["headers"] = without
	}
	whole, err := wire.Encode(members)
	if err != nil {
		return nil, err
	}
	return wire.Canonical(whole, form, canonicalDepth)
}

// Sign adds the signature of a message: of its form of RFC 8785, in base64. Headers without
// another member than the signature are an empty object in that form.
func Sign(m *Message, key []byte) error {
	m.Headers.Signature = new(Signature)
	object, err := wire.Encode(m)
	if err != nil {
		return err
	}
	form, err := signedForm(object, wire.RFC8785)
	if err != nil {
		return err
	}
	m.Headers.Signature = &Signature{Algorithm: algorithm, Value: base64.StdEncoding.EncodeToString(sum(form, key))}
	return nil
}

func sum(text, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil)
}

// Verify returns nil if the message was signed with the key: over its form of RFC 8785, or
// over what Python's json.dumps with sort_keys writes, in base64 or hex (M-075).
func (in Received) Verify(key []byte) error {
	s := in.Headers.Signature
	switch {
	case s == nil:
		return errors.New("headers.signature is missing")
	case s.Algorithm != algorithm:
		return fmt.Errorf("headers.signature.algorithm must be %s", algorithm)
	}
	value, err := base64.StdEncoding.DecodeString(s.Value)
	if err != nil || len(value) != sha256.Size {
		value, err = hex.DecodeString(s.Value)
	}
	if err != nil || len(value) != sha256.Size {
		return errors.New("headers.signature.value must be 32 bytes in base64 or hex")
	}
	if form, err := signedForm(in.object, wire.RFC8785); err == nil && hmac.Equal(value, sum(form, key)) {
		return nil
	}
	form, err := signedForm(in.object, wire.AsSent)
	if err == nil && hmac.Equal(value, sum(pythonForm(form), key)) {
		return nil
	}
	return ErrSignature
}

// pythonForm has a blank behind each comma and colon between values, and escapes for what is
// not printable ASCII (https://docs.python.org/3/library/json.html#json.dumps).
func pythonForm(canonical []byte) []byte {
	var out strings.Builder
	inString, escaped := false, false
	for _, r := range string(canonical) {
		switch {
		case r >= 0x7f:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
		default:
			out.WriteByte(byte(r))
		}
		switch {
		case escaped:
			escaped = false
		case inString && r == '\\':
			escaped = true
		case r == '"':
			inString = !inString
		case !inString && (r == ',' || r == ':'):
			out.WriteByte(' ')
		}
	}
	return []byte(out.String())
}

// Digest is a hash of what a repeat of the message has as well: all but the signature and
// its time, the credential, and the routing hints that change on the way.
func (in Received) Digest(hopHints ...string) (digest [sha256.Size]byte, err error) {
	m := in.Message
	m.Timestamp, m.Headers.Signature, m.Headers.Authentication = "", nil, nil
	hints := map[string]json.RawMessage{} // also for none: a binding may have added a trace
	for name, value := range m.Headers.Hints {
		hints[name] = value
	}
	for _, name := range hopHints {
		delete(hints, name)
	}
	m.Headers.Hints = hints
	text, err := wire.Encode(m)
	return sha256.Sum256(text), err
}
