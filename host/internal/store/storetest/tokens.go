package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/api/auth"
)

var tokenCases = cases{
	"tokens are kept":                 keepTokens,
	"no id and no digest comes twice": sameToken,
	"tokens change and go":            changeTokens,
	"tokens go with their tenant":     eraseTokens,
	"many tokens are added at once":   manyTokens,
}

func reopenTokens(t *testing.T, e Engine) {
	at := e.NewPlace(t)
	s := e.Open(t, at)
	want := testTokens("acme", 3)
	addTokens(t, s, want...)
	closeStore(t, s)
	wantTokens(t, openAt(t, e, at), want)
}

// testTokens are different ones of a tenant, oldest first.
func testTokens(tenant string, n int) (all []auth.IssuedToken) {
	for i := range n {
		id := fmt.Sprintf("%s-%03d", tenant, i)
		at := time.Unix(1e9+int64(i), 123456789).UTC()
		token := auth.IssuedToken{
			ID: id, Label: "l\x00\n" + id, SHA256: sha256.Sum256([]byte(id)), By: "default/admin:ada", Created: at,
			Principal: auth.Principal{Tenant: tenant, Role: auth.User, ID: "alice"},
		}
		if i%2 == 1 {
			token.Principal = auth.Principal{Tenant: tenant, Role: auth.Agent, ID: "depot", Peer: "harbor"}
			token.Expires = at.Add(time.Hour)
		}
		all = append(all, token)
	}
	return all
}

func addTokens(t *testing.T, s Store, all ...auth.IssuedToken) {
	t.Helper()
	for _, i := range all {
		if err := s.AddToken(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
}

func wantTokens(t *testing.T, s Store, want []auth.IssuedToken) {
	t.Helper()
	got, err := s.Tokens(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Tokens() = %v (-want +got)\n%s", err, diff)
	}
}

func keepTokens(t *testing.T, s Store) {
	wantTokens(t, s, nil)
	want := testTokens("acme", 5)
	addTokens(t, s, want...)
	wantTokens(t, s, want)
}

// Neither an id nor a digest is there twice.
func sameToken(t *testing.T, s Store) {
	want := testTokens("acme", 1)
	addTokens(t, s, want...)
	twin := testTokens("other", 1)[0]
	twin.ID = want[0].ID
	double := testTokens("other", 1)[0]
	double.SHA256 = want[0].SHA256
	for _, i := range []auth.IssuedToken{twin, double} {
		if err := s.AddToken(t.Context(), i); err == nil {
			t.Errorf("%s is there twice", i.ID)
		}
	}
	wantTokens(t, s, want)
}

func changeTokens(t *testing.T, s Store) {
	want := testTokens("acme", 4)
	addTokens(t, s, want...)
	want[1].Used = time.Unix(2e9, 5).UTC()
	want[2].Revoked = time.Unix(2e9, 6).UTC()
	gone := testTokens("gone", 1)
	if err := s.UpdateTokens(t.Context(), append(gone, want[1:3]...)); err != nil {
		t.Fatal(err)
	}
	wantTokens(t, s, want)
	if err := s.DropTokens(t.Context(), []string{want[0].ID, "none", want[3].ID}); err != nil {
		t.Fatal(err)
	}
	wantTokens(t, s, want[1:3])
}

// A tenant's tokens go with it, and are part of what is exported.
func eraseTokens(t *testing.T, s Store) {
	acme, globex := testTokens("acme", 3), testTokens("globex", 2)
	addTokens(t, s, append(acme, globex...)...)
	var b bytes.Buffer
	if err := s.Export(t.Context(), "acme", &b); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for text := range strings.Lines(b.String()) {
		var l struct {
			Kind string
			Data struct{ ID string }
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if l.Kind == "token" && strings.HasPrefix(l.Data.ID, "acme-") {
			lines++
		}
	}
	if lines != 3 || strings.Contains(b.String(), "globex") {
		t.Errorf("the export has %d tokens:\n%s", lines, b.String())
	}
	if err := s.Erase(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	wantTokens(t, s, globex)
	addTokens(t, s, acme[0])
}

func manyTokens(t *testing.T, s Store) {
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for _, i := range testTokens(fmt.Sprint("t", w), 25) {
				if err := s.AddToken(t.Context(), i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if all, err := s.Tokens(t.Context()); err != nil || len(all) != 100 {
		t.Errorf("%d tokens, %v", len(all), err)
	}
}
