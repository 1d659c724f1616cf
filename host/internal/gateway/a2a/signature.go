package a2a

import (
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-jose/go-jose/v4"

	"skep/host/internal/gateway/wire"
)

// keysPath is the path of the public keys of cards, below prefix.
const keysPath = "keys.json"

// CardKey signs agent cards. No print verb shows it.
type CardKey struct {
	private ed25519.PrivateKey
	public  jose.JSONWebKey
	// next signs from a time on. It and old are published besides.
	next, old *CardKey
	from      time.Time
}

// WithNext returns the key with one that signs in its place from a time on.
func (k CardKey) WithNext(next *CardKey, from time.Time) *CardKey {
	k.next, k.from = next, from
	return &k
}

// WithOld returns the key with the one that signed before.
func (k CardKey) WithOld(old *CardKey) *CardKey {
	k.old = old
	return &k
}

// inForce is the key that signs at a time.
func (k *CardKey) inForce(at time.Time) *CardKey {
	if k.next != nil && !at.Before(k.from) {
		return k.next
	}
	return k
}

// published are the public keys: what signs, what will, what did.
func (k *CardKey) published() []jose.JSONWebKey {
	keys := []jose.JSONWebKey{k.public}
	for _, other := range []*CardKey{k.next, k.old} {
		if other != nil {
			keys = append(keys, other.public)
		}
	}
	return keys
}

// NewCardKey returns a key whose id is its thumbprint (https://www.rfc-editor.org/rfc/rfc7638).
func NewCardKey(private ed25519.PrivateKey) (*CardKey, error) {
	public := jose.JSONWebKey{Key: private.Public(), Algorithm: string(jose.EdDSA), Use: "sig"}
	sum, err := public.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("the key of agent cards: %w", err)
	}
	public.KeyID = base64.RawURLEncoding.EncodeToString(sum)
	return &CardKey{private: private, public: public}, nil
}

// Format keeps every verb of package fmt from printing the key.
func (k *CardKey) Format(f fmt.State, _ rune) { fmt.Fprint(f, "a2a.CardKey(", k.public.KeyID, ")") }

// sign returns the signature of a card, a JSON Web Signature over its canonical form
// (https://a2a-protocol.org/latest/specification/#84-agent-card-signing).
func (k *CardKey) sign(card *a2a.AgentCard, keys string) (a2a.AgentCardSignature, error) {
	k = k.inForce(time.Now())
	payload, err := canonicalCard(card)
	if err != nil {
		return a2a.AgentCardSignature{}, err
	}
	options := (&jose.SignerOptions{}).WithType("JOSE").WithHeader("kid", k.public.KeyID).WithHeader("jku", keys)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: k.private}, options)
	if err != nil {
		return a2a.AgentCardSignature{}, err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return a2a.AgentCardSignature{}, err
	}
	var parts struct{ Protected, Signature string }
	err = json.Unmarshal([]byte(signed.FullSerialize()), &parts)
	return a2a.AgentCardSignature{Protected: parts.Protected, Signature: parts.Signature}, err
}

// serveKeys serves the public keys of cards as a JSON Web Key Set.
func (g *Gateway) serveKeys(w http.ResponseWriter, r *http.Request) {
	if g.CardKey == nil {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "max-age=3600")
	_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: g.CardKey.published()})
}

// maxCardDepth bounds the levels of a card that is signed or verified.
const maxCardDepth = 100

// canonicalCard returns what a card's signature is over: the card without signatures and
// without empty values, in canonical JSON (https://www.rfc-editor.org/rfc/rfc8785).
func canonicalCard(card any) ([]byte, error) {
	text, err := json.Marshal(card)
	if err != nil {
		return nil, err
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	delete(members, "signatures")
	if text, err = json.Marshal(withoutEmpty(members)); err != nil {
		return nil, err
	}
	return wire.Canonical(text, wire.RFC8785, maxCardDepth)
}

// withoutEmpty removes empty texts, lists, objects and null, as a message of Protocol
// Buffers has no place for them. It returns nil for an empty value.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if v[name] = withoutEmpty(member); v[name] == nil {
				delete(v, name)
			}
		}
		if len(v) > 0 {
			return v
		}
		return nil
	case []any:
		var kept []any
		for _, entry := range v {
			if entry = withoutEmpty(entry); entry != nil {
				kept = append(kept, entry)
			}
		}
		if len(kept) > 0 {
			return kept
		}
		return nil
	case string:
		if v == "" {
			return nil
		}
	}
	return value
}

// errSignature means that no signature of a card is by a pinned key.
var errSignature = errors.New("no signature of the card is by a key of the partner's keys")

// verifyCard checks that one of the keys has signed a card. text is the card as it came:
// its signer has seen either all of it or the members of version 1.0.
func verifyCard(text []byte, card *a2a.AgentCard, keys []jose.JSONWebKey) error {
	var whole any = json.RawMessage(text)
	for _, form := range []any{whole, card} {
		payload, err := canonicalCard(form)
		if err != nil {
			return err
		}
		for _, s := range card.Signatures {
			for _, key := range keys {
				if verifies(s, payload, key) {
					return nil
				}
			}
		}
	}
	return errSignature
}

func verifies(s a2a.AgentCardSignature, payload []byte, key jose.JSONWebKey) bool {
	compact := s.Protected + "." + base64.RawURLEncoding.EncodeToString(payload) + "." + s.Signature
	signed, err := jose.ParseSignedCompact(compact, []jose.SignatureAlgorithm{jose.EdDSA, jose.ES256, jose.ES384, jose.RS256, jose.PS256})
	if err != nil {
		return false
	}
	_, err = signed.Verify(key)
	return err == nil
}
