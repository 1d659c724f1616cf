package a2a

import (
	"encoding/json"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-jose/go-jose/v4"
)

// VerifyCard checks a card as it came by a JSON Web Key Set.
func VerifyCard(text, set []byte) error {
	var card a2a.AgentCard
	var keys jose.JSONWebKeySet
	if err := json.Unmarshal(text, &card); err != nil {
		return err
	}
	if err := json.Unmarshal(set, &keys); err != nil {
		return err
	}
	return verifyCard(text, &card, keys.Keys)
}

// CanonicalCard is what the signature of a card that came is over.
func CanonicalCard(text []byte) ([]byte, error) {
	var card a2a.AgentCard
	if err := json.Unmarshal(text, &card); err != nil {
		return nil, err
	}
	return canonicalCard(&card)
}

// LimitAnswer bounds what a foreign task may answer.
func (g *Gateway) LimitAnswer(bytes int) { g.maxAnswer = bytes }
