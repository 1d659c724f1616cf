package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/auth"
)

// TokenEngine is an engine that keeps issued tokens, too.
type TokenEngine interface {
	auth.TokenStore
	Erase(ctx context.Context, tenant string) error
	Export(ctx context.Context, tenant string, w io.Writer) error
	io.Closer
}

// RunTokens tests an engine behind [auth.TokenStore]. Open is as for [Run].
func RunTokens(t *testing.T, open func(t *testing.T, dir string) TokenEngine) {
	for name, run := range map[string]func(*testing.T, TokenEngine){
		"keep": keepTokens, "same": sameToken, "change": changeTokens, "erase": eraseTokens, "together": manyTokens,
	} {
		t.Run("tokens/"+name, func(t *testing.T) {
			t.Parallel()
			e := open(t, t.TempDir())
			defer closeTokens(t, e)
			run(t, e)
		})
	}
	t.Run("tokens/reopen", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		e := open(t, dir)
		want := testTokens("acme", 3)
		addTokens(t, e, want...)
		closeTokens(t, e)
		e = open(t, dir)
		defer closeTokens(t, e)
		wantTokens(t, e, want)
	})
}

func closeTokens(t *testing.T, e TokenEngine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error("Close:", err)
	}
}

// testTokens are different ones of a tenant, oldest first.
func testTokens(tenant string, n int) (all []auth.Issued) {
	for i := range n {
		id := fmt.Sprintf("%s-%03d", tenant, i)
		at := time.Unix(1e9+int64(i), 123456789).UTC()
		token := auth.Issued{
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

func addTokens(t *testing.T, e TokenEngine, all ...auth.Issued) {
	t.Helper()
	for _, i := range all {
		if err := e.AddToken(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
}

func wantTokens(t *testing.T, e TokenEngine, want []auth.Issued) {
	t.Helper()
	got, err := e.Tokens(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Tokens() = %v (-want +got)\n%s", err, diff)
	}
}

func keepTokens(t *testing.T, e TokenEngine) {
	wantTokens(t, e, nil)
	want := testTokens("acme", 5)
	addTokens(t, e, want...)
	wantTokens(t, e, want)
}

// Neither an id nor a digest is there twice.
func sameToken(t *testing.T, e TokenEngine) {
	want := testTokens("acme", 1)
	addTokens(t, e, want...)
	twin := testTokens("other", 1)[0]
	twin.ID = want[0].ID
	double := testTokens("other", 1)[0]
	double.SHA256 = want[0].SHA256
	for _, i := range []auth.Issued{twin, double} {
		if err := e.AddToken(t.Context(), i); err == nil {
			t.Errorf("%s is there twice", i.ID)
		}
	}
	wantTokens(t, e, want)
}

func changeTokens(t *testing.T, e TokenEngine) {
	want := testTokens("acme", 4)
	addTokens(t, e, want...)
	want[1].Used = time.Unix(2e9, 5).UTC()
	want[2].Revoked = time.Unix(2e9, 6).UTC()
	gone := testTokens("gone", 1)
	if err := e.UpdateTokens(t.Context(), append(gone, want[1:3]...)); err != nil {
		t.Fatal(err)
	}
	wantTokens(t, e, want)
	if err := e.DropTokens(t.Context(), []string{want[0].ID, "none", want[3].ID}); err != nil {
		t.Fatal(err)
	}
	wantTokens(t, e, want[1:3])
}

// A tenant's tokens go with it, and are part of what is exported.
func eraseTokens(t *testing.T, e TokenEngine) {
	acme, globex := testTokens("acme", 3), testTokens("globex", 2)
	addTokens(t, e, append(acme, globex...)...)
	var b bytes.Buffer
	if err := e.Export(t.Context(), "acme", &b); err != nil {
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
	if err := e.Erase(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	wantTokens(t, e, globex)
	addTokens(t, e, acme[0])
}

func manyTokens(t *testing.T, e TokenEngine) {
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for _, i := range testTokens(fmt.Sprint("t", w), 25) {
				if err := e.AddToken(t.Context(), i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if all, err := e.Tokens(t.Context()); err != nil || len(all) != 100 {
		t.Errorf("%d tokens, %v", len(all), err)
	}
}
