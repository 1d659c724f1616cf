package seal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrToken is returned for a token that does not count.
var ErrToken = errors.New("the capability token does not count")

// failToken returns why a token does not count.
func failToken(format string, args ...any) error {
	return failure{ErrToken, fmt.Sprintf(format, args...)}
}

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
		return Token{}, failToken("it has more than %d bytes", maxToken)
	}
	if strings.Count(text, ".") == 2 {
		return readJWT(text)
	}
	return readCWT(text)
}

// Verify returns nil if one of the keys has signed the token.
func (t Token) Verify(keys []PublicKey) error {
	keys = (Header{KeyID: t.KeyID, alg: t.alg}).candidates(keys)
	if len(keys) == 0 {
		return failToken("its key %.200q is none of %s of its issuer, %.200q", t.KeyID, t.alg, t.Issuer)
	}
	for _, k := range keys {
		if t.verify(k) == nil {
			return nil
		}
	}
	return failToken("it was signed with another key than its issuer's, or was changed")
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
		return failToken("it has no exp")
	case !u.Now.Before(t.Expires.Add(u.Skew)):
		return failToken("it expired at %s", t.Expires.UTC().Format(time.RFC3339))
	case u.Now.Before(t.NotBefore.Add(-u.Skew)):
		return failToken("it is not valid before %s", t.NotBefore.UTC().Format(time.RFC3339))
	case len(t.Audience) == 0:
		return failToken("it has no aud")
	case !slices.ContainsFunc(t.Audience, func(id string) bool { return slices.Contains(u.Audience, id) }):
		return failToken("its aud %.200q names none of %q", t.Audience, u.Audience)
	case !slices.Contains(u.Issuers, t.Issuer):
		return ForeignIssuer(t.Issuer)
	case t.Subject != "" && t.Subject != u.Subject:
		return failToken("its sub is %.200q, and the sender another", t.Subject)
	}
	return t.checkScope(u)
}

// ForeignIssuer is why a token from an issuer does not count that is not one of a use.
func ForeignIssuer(issuer string) error {
	if issuer == "" {
		return failToken("it has no iss")
	}
	return failToken("its iss %.200q is neither the sender nor the recipient or its host", issuer)
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
