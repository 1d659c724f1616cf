package iacp_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"testing"

	"github.com/google/uuid"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/iacp/iacptest"
)

// signer is a private key as a partner's table has it, and what verifies its signatures.
type signer struct {
	key      string
	verifies func(text, value []byte) bool
}

// newSigners makes a key of each algorithm.
func newSigners(t *testing.T) map[string]signer {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	scalar, err := curve.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	point, err := curve.PublicKey.Bytes() // 4, x and y
	if err != nil {
		t.Fatal(err)
	}
	return map[string]signer{
		"EdDSA": {
			fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":"one","x":%q,"d":%q}`, encode(public), encode(private.Seed())),
			func(text, value []byte) bool { return ed25519.Verify(public, text, value) },
		},
		"ES256": {
			fmt.Sprintf(`{"kty":"EC","crv":"P-256","kid":"one","x":%q,"y":%q,"d":%q}`, encode(point[1:33]), encode(point[33:]), encode(scalar)),
			func(text, value []byte) bool {
				sum := sha256.Sum256(text)
				return len(value) == 64 && ecdsa.Verify(&curve.PublicKey, sum[:], new(big.Int).SetBytes(value[:32]), new(big.Int).SetBytes(value[32:]))
			},
		},
	}
}

// TestSignsMessages (I-074, V-I44): questions, answers and refusals to a partner with sign are signed
// with its key, by each algorithm; what is about the connection is not.
func TestSignsMessages(t *testing.T) {
	t.Parallel()
	for alg, c := range newSigners(t) {
		t.Run(alg, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p, _ := s.rt.Partner("depot")
			p.SigningKey = []byte(c.key)
			s.rt.AddPartner(p)
			conn := s.dial(t, "ack")
			check := func(m iacptest.Message) {
				t.Helper()
				text, signature := signedText(t, m)
				value, err := base64.RawURLEncoding.DecodeString(fmt.Sprint(signature["value"]))
				if err != nil || signature["alg"] != alg || signature["kid"] != "one" || !c.verifies(text, value) {
					t.Errorf("%v is no signature of %s: %v", signature, text, err)
				}
			}
			if _, signature := signedText(t, exchange(t, conn, task("hello"), "ack")); signature != nil {
				t.Errorf("an acknowledgement is signed: %v", signature)
			}
			check(read(t, conn, "task_response"))
			unknown := task("hello")
			unknown.Recipient.ID = "absent"
			check(exchange(t, conn, unknown, "error_response"))
			carried := make(chan gateway.Carried, 1)
			go func() { carried <- s.g.Carry(context.WithoutCancel(t.Context()), p, delivery(uuid.NewString())) }()
			question := read(t, conn, "task_request")
			check(question)
			if err := conn.Send(question.Reply("task_response", map[string]any{"status": "completed"}).Text()); err != nil {
				t.Fatal(err)
			}
			<-carried
		})
	}
}

// signedText is what the signature of a message covers, and the signature, nil for none. The messages
// of the test are in the form of RFC 8785 when their members are sorted.
func signedText(t *testing.T, m iacptest.Message) (text []byte, signature map[string]any) {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(m.Raw), &members); err != nil {
		t.Fatal(err)
	}
	metadata, _ := members["metadata"].(map[string]any)
	signature, _ = metadata["signature"].(map[string]any)
	delete(metadata, "signature")
	if len(metadata) == 0 {
		delete(members, "metadata")
	}
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return text, signature
}
