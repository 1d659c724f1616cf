package auth_test

import (
	"testing"

	"skep/host/internal/api/auth"
)

// An agent's token tells at each use who had it made, however the maker is called;
// what cannot be read counts as an admin of its own tenant.
func TestMaker(t *testing.T) {
	t.Parallel()
	tokens, err := auth.OpenTokens(t.Context(), newLedger(), nil)
	if err != nil {
		t.Fatal(err)
	}
	own := auth.Creator{Tenant: "acme", Role: auth.Admin}
	for by, want := range map[string]auth.Creator{
		"default/operator:root":            {Tenant: "default", Role: auth.Operator},
		"default/admin:ada":                {Tenant: "default", Role: auth.Admin},
		"globex/admin:x/operator:y":        {Tenant: "globex", Role: auth.Admin},
		"admin:x/operator:y":               own,
		"operator:root":                    own,
		"":                                 own,
		"default/root":                     own,
		"default/king:root":                own,
		"default/operator":                 own,
		"default/admin:default/operator:x": {Tenant: "default", Role: auth.Admin},
	} {
		text, i, err := tokens.Issue(t.Context(), auth.Principal{Tenant: "acme", Role: auth.Agent, ID: "depot"}, 0, "", by)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := tokens.Authenticate(t.Context(), text); err != nil || p.Creator != want {
			t.Errorf("made by %q: %+v, %v, want %+v", by, p.Creator, err, want)
		}
		if i.Creator != (auth.Creator{}) {
			t.Errorf("what is kept of a token says %+v", i.Creator)
		}
	}
	text, _, err := tokens.Issue(t.Context(), auth.Principal{Tenant: "acme", Role: auth.User, ID: "alice"}, 0, "", "acme/admin:ann")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := tokens.Authenticate(t.Context(), text); err != nil || p.Creator != (auth.Creator{}) {
		t.Errorf("a user's token: %+v, %v", p, err)
	}
}
