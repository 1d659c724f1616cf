package seal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrScope is returned for a token that counts and does not cover what is asked.
var ErrScope = errors.New("the capability token does not cover it")

// Claims are what a capability token grants (U-042).
type Claims struct {
	Issuer, Subject string // an empty Subject allows any bearer
	Audience        []string
	Scope           []string
	Expires         time.Time
	NotBefore       time.Time // zero for none
}

// Token is a capability token: a JSON Web Token, or a CBOR Web Token in base64url.
type Token struct {
	Claims
	// KeyID is a DID URL, empty for none. As the claims it is not proven before Verify.
	KeyID string
	alg   algorithm
	// verify returns nil if a key has signed the token.
	verify func(PublicKey) error
}

// maxToken bounds a token in bytes.
const maxToken = 8 << 10

// ReadToken reads a token of either form (U-043).
func ReadToken(text string) (Token, error) {
	if len(text) > maxToken {
		return Token{}, fail("the capability token has more than %d bytes", maxToken)
	}
	if strings.Count(text, ".") == 2 {
		return readJWT(text)
	}
	return readCWT(text)
}

// Verify returns nil if one of the keys has signed the token.
func (t Token) Verify(keys []PublicKey) error {
	for _, k := range (Header{KeyID: t.KeyID, alg: t.alg}).candidates(keys) {
		if t.verify(k) == nil {
			return nil
		}
	}
	return fail("the capability token is not signed by its issuer")
}

// Use is what a token is shown for.
type Use struct {
	Now time.Time
	// Skew is how far clocks may differ.
	Skew time.Duration
	// Audience are the ids of which the token must name one, Issuers those from which it
	// may come, Subject the sender.
	Audience, Issuers []string
	Subject           string
	// Need is the scope that must be there: uamp:ask, stream:read. Agent is the agent that
	// is asked, empty for none: a token that names agents must name it.
	Need, Agent string
}

// agentScope begins the scopes that name agents, intentScope those that name intents.
const (
	agentScope  = "agent:"
	intentScope = "uamp:"
)

// Check returns why a token that was verified does not count for a use.
func (t Token) Check(u Use) error {
	switch {
	case t.Expires.IsZero():
		return fail("the capability token has no exp")
	case !u.Now.Before(t.Expires.Add(u.Skew)):
		return fail("the capability token has expired")
	case u.Now.Before(t.NotBefore.Add(-u.Skew)):
		return fail("the capability token is not valid yet")
	case !slices.ContainsFunc(t.Audience, func(id string) bool { return slices.Contains(u.Audience, id) }):
		return fail("the capability token is for another audience")
	case !slices.Contains(u.Issuers, t.Issuer):
		return fail("the capability token is of an issuer that is not trusted")
	case t.Subject != "" && t.Subject != u.Subject:
		return fail("the capability token is of another subject")
	}
	return t.checkScope(u)
}

func (t Token) checkScope(u Use) error {
	any := ""
	if strings.HasPrefix(u.Need, intentScope) {
		any = intentScope + "*"
	}
	if !slices.ContainsFunc(t.Scope, func(s string) bool { return s == u.Need || any != "" && s == any }) {
		return fmt.Errorf("%w: its scope lacks %s", ErrScope, u.Need)
	}
	named := slices.ContainsFunc(t.Scope, func(s string) bool { return strings.HasPrefix(s, agentScope) })
	if named && !slices.Contains(t.Scope, agentScope+u.Agent) {
		return fmt.Errorf("%w: its scope names other agents", ErrScope)
	}
	return nil
}

// scopes are the scopes of a claim: a list, or a text with blanks between them.
func scopes(claim any) (list []string, ok bool) {
	switch claim := claim.(type) {
	case string:
		return strings.Fields(claim), true
	case []byte:
		return strings.Fields(string(claim)), true
	}
	return texts(claim)
}

// texts are the texts of a claim that is one or a list of them.
func texts(claim any) (list []string, ok bool) {
	switch claim := claim.(type) {
	case nil:
		return nil, true
	case string:
		return []string{claim}, true
	case []any:
		for _, item := range claim {
			text, is := item.(string)
			if !is {
				return nil, false
			}
			list = append(list, text)
		}
		return list, true
	}
	return nil, false
}

// maxSeconds bounds times in Unix seconds.
const maxSeconds = 1 << 40

// at is a time in Unix seconds; none is zero.
func at(seconds *float64) (time.Time, bool) {
	switch {
	case seconds == nil:
		return time.Time{}, true
	case !(*seconds > 0 && *seconds < maxSeconds):
		return time.Time{}, false
	}
	return time.UnixMilli(int64(*seconds * 1000)), true
}
