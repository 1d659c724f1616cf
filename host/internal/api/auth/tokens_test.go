package auth_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/host/internal/api/auth"
)

// ledger is a token store in memory.
type ledger struct {
	mu   sync.Mutex
	kept map[string]auth.IssuedToken
	fail error
}

func newLedger() *ledger { return &ledger{kept: map[string]auth.IssuedToken{}} }

func (l *ledger) do(f func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail == nil {
		f()
	}
	return l.fail
}

func (l *ledger) Tokens(context.Context) (all []auth.IssuedToken, err error) {
	return all, l.do(func() {
		for _, i := range l.kept {
			all = append(all, i)
		}
	})
}

func (l *ledger) AddToken(_ context.Context, i auth.IssuedToken) error {
	return l.do(func() { l.kept[i.ID] = i })
}

func (l *ledger) UpdateTokens(_ context.Context, changed []auth.IssuedToken) error {
	return l.do(func() {
		for _, i := range changed {
			l.kept[i.ID] = i
		}
	})
}

func (l *ledger) DropTokens(_ context.Context, ids []string) error {
	return l.do(func() {
		for _, id := range ids {
			delete(l.kept, id)
		}
	})
}

func openTokens(t *testing.T, l *ledger, now func() time.Time) *auth.Tokens {
	t.Helper()
	tokens, err := auth.OpenTokens(t.Context(), l, now)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

var alice = auth.Principal{Tenant: "acme", Role: auth.User, ID: "alice"}

func issue(t *testing.T, tokens *auth.Tokens, p auth.Principal, life time.Duration) (string, auth.IssuedToken) {
	t.Helper()
	text, i, err := tokens.Issue(t.Context(), p, life, "laptop", "acme/admin:ada")
	if err != nil {
		t.Fatal(err)
	}
	return text, i
}

// No operator comes out of the store, by whatever way it came there.
func TestNoOperatorsInTheStore(t *testing.T) {
	t.Parallel()
	l := newLedger()
	for n, role := range []auth.Role{auth.Operator, "root", ""} {
		text := fmt.Sprint("skep_", n)
		id := fmt.Sprint(n)
		l.kept[id] = auth.IssuedToken{ID: id, Principal: auth.Principal{Tenant: "default", Role: role, ID: "eve"}, SHA256: sha256.Sum256([]byte(text))}
		if p, err := openTokens(t, l, nil).Authenticate(t.Context(), text); !errors.Is(err, auth.ErrUnknown) {
			t.Errorf("a stored token of role %q opens %v, %v", role, p, err)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	l := newLedger()
	tokens := openTokens(t, l, func() time.Time { return now })
	text, i := issue(t, tokens, alice, time.Hour)
	forever, j := issue(t, tokens, auth.Principal{Tenant: "globex", Role: auth.Agent, ID: "a", Peer: "depot"}, 0)
	if !strings.HasPrefix(text, "skep_") || len(text) != 48 || i.SHA256 != sha256.Sum256([]byte(text)) {
		t.Errorf("token %q, %+v", text, i)
	}
	who := func(tokens *auth.Tokens, text string) string {
		p, err := tokens.Authenticate(t.Context(), text)
		if err != nil {
			if !errors.Is(err, auth.ErrUnknown) || strings.Contains(err.Error(), text) && text != "" {
				t.Errorf("Authenticate = %v", err)
			}
			return ""
		}
		return p.String()
	}
	again := openTokens(t, l, func() time.Time { return now })
	for _, tokens := range []*auth.Tokens{tokens, again} {
		for text, want := range map[string]string{
			text: "acme/user:alice", forever: "globex/agent:a",
			"": "", "skep_": "", text + "x": "", text[5:]: "", strings.ToUpper(text): "",
		} {
			if got := who(tokens, text); got != want {
				t.Errorf("%q is %q, want %q", text, got, want)
			}
		}
	}
	if got := tokens.List("acme"); len(got) != 1 || got[0].ID != i.ID || got[0].Used != now {
		t.Errorf("List(acme) = %+v", got)
	}
	if got := tokens.List(""); len(got) != 2 {
		t.Errorf("List() = %+v", got)
	}
	now = now.Add(time.Hour)
	if who(tokens, text) != "" || who(tokens, forever) == "" {
		t.Error("at the hour: the first still lives, or the other does not")
	}
	if r, err := tokens.Revoke(t.Context(), j.ID); err != nil || !r.Revoked.Equal(now) {
		t.Errorf("Revoke = %+v, %v", r, err)
	}
	if who(tokens, forever) != "" || who(openTokens(t, l, func() time.Time { return now }), forever) != "" {
		t.Error("a revoked token lives")
	}
	first := now
	now = now.Add(time.Minute)
	if r, err := tokens.Revoke(t.Context(), j.ID); err != nil || !r.Revoked.Equal(first) {
		t.Errorf("Revoke again = %+v, %v", r, err)
	}
	if _, err := tokens.Revoke(t.Context(), "nobody"); !errors.Is(err, auth.ErrNoToken) {
		t.Errorf("Revoke of none = %v", err)
	}
}

// What was used is written now and then, what ended long ago is dropped.
func TestTokensSave(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	l := newLedger()
	tokens := openTokens(t, l, func() time.Time { return now })
	text, i := issue(t, tokens, alice, 0)
	_, short := issue(t, tokens, alice, time.Minute)
	_, _ = tokens.Authenticate(t.Context(), text)
	if err := tokens.Save(t.Context()); err != nil || !l.kept[i.ID].Used.Equal(now) {
		t.Errorf("Save = %v, used %v", err, l.kept[i.ID].Used)
	}
	used := now
	now = now.Add(59 * time.Minute)
	_, _ = tokens.Authenticate(t.Context(), text)
	_ = tokens.Save(t.Context())
	if !l.kept[i.ID].Used.Equal(used) {
		t.Error("a use within the hour is written")
	}
	now = now.Add(30 * 24 * time.Hour)
	if err := tokens.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.kept[short.ID]; ok || len(tokens.List("")) != 1 {
		t.Errorf("kept: %v", l.kept)
	}
	tokens.DropTenant("acme")
	if got := tokens.List(""); len(got) != 0 {
		t.Errorf("after Forget: %v", got)
	}
}

func TestTokensFail(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	l := newLedger()
	tokens := openTokens(t, l, func() time.Time { return now })
	text, i := issue(t, tokens, alice, 0)
	_, _ = tokens.Authenticate(t.Context(), text)
	l.fail = errors.New("disk on fire")
	if text, _, err := tokens.Issue(t.Context(), alice, 0, "", ""); !errors.Is(err, l.fail) || text != "" {
		t.Errorf("Issue = %q, %v", text, err)
	}
	if _, err := tokens.Revoke(t.Context(), i.ID); !errors.Is(err, l.fail) {
		t.Errorf("Revoke = %v", err)
	}
	if err := tokens.Save(t.Context()); !errors.Is(err, l.fail) {
		t.Errorf("Save = %v", err)
	}
	if _, err := auth.OpenTokens(t.Context(), l, nil); !errors.Is(err, l.fail) {
		t.Errorf("OpenTokens = %v", err)
	}
	if n := len(tokens.List("")); n != 1 {
		t.Errorf("%d tokens", n)
	}
	if _, err := tokens.Authenticate(t.Context(), text); err != nil {
		t.Errorf("what could not be revoked is: %v", err)
	}
	l.fail = nil
	if err := tokens.Save(t.Context()); err != nil || !l.kept[i.ID].Used.Equal(now) {
		t.Errorf("Save = %v, used %v", err, l.kept[i.ID].Used)
	}
}

func TestTokensBound(t *testing.T) {
	t.Parallel()
	l := newLedger()
	for n := range 10_000 {
		id := string(rune('a'+n%26)) + string(rune(n))
		l.kept[id] = auth.IssuedToken{ID: id, Principal: alice, SHA256: sha256.Sum256([]byte(id))}
	}
	tokens := openTokens(t, l, nil)
	if _, _, err := tokens.Issue(t.Context(), alice, 0, "", ""); !errors.Is(err, auth.ErrTooManyTokens) {
		t.Errorf("Issue = %v", err)
	}
	other := alice
	other.Tenant = "globex"
	issue(t, tokens, other, 0)
}

// Tokens that are made and revoked in a loop do not pile up: of those that have
// ended the oldest go first.
func TestTokensEndedBound(t *testing.T) {
	t.Parallel()
	const most = 1000
	at := time.Unix(1e9, 0)
	l := newLedger()
	for n := range most + 2 {
		id := fmt.Sprintf("%04d", n)
		l.kept[id] = auth.IssuedToken{ID: id, Principal: alice, SHA256: sha256.Sum256([]byte(id)), Revoked: at.Add(time.Duration(n) * time.Second)}
	}
	tokens := openTokens(t, l, func() time.Time { return at.Add(time.Hour) })
	l.fail = errors.New("disk on fire")
	if _, _, err := tokens.Issue(t.Context(), alice, 0, "", ""); !errors.Is(err, l.fail) {
		t.Errorf("Issue = %v", err)
	}
	l.fail = nil
	_, i := issue(t, tokens, alice, 0)
	if n := len(tokens.List("")); n != most+1 || len(l.kept) != most+1 {
		t.Errorf("%d tokens, %d in the store", n, len(l.kept))
	}
	for id, there := range map[string]bool{"0000": false, "0001": false, "0002": true, i.ID: true} {
		if _, err := tokens.Get(id); (err == nil) != there {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestTokensTogether(t *testing.T) {
	t.Parallel()
	l := newLedger()
	tokens := openTokens(t, l, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				text, i, err := tokens.Issue(t.Context(), alice, time.Hour, "", "")
				if err != nil {
					t.Error(err)
				}
				if _, err := tokens.Authenticate(t.Context(), text); err != nil {
					t.Error(err)
				}
				_ = tokens.Save(t.Context())
				if _, err := tokens.Revoke(t.Context(), i.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if all := tokens.List(""); len(all) != 400 || !slices.IsSortedFunc(all, func(a, b auth.IssuedToken) int { return a.Created.Compare(b.Created) }) {
		t.Errorf("%d tokens", len(all))
	}
	for id, i := range l.kept {
		if i.Revoked.IsZero() {
			t.Errorf("%s is not revoked in the store", id)
		}
	}
}

// A chain tries backends in order; a token that one claims is not shown to the
// next.
func TestChain(t *testing.T) {
	t.Parallel()
	keys, err := auth.NewKeys([]auth.Key{key(auth.Operator, "root", "skep_op_root-of-the-host")})
	if err != nil {
		t.Fatal(err)
	}
	tokens := openTokens(t, newLedger(), nil)
	text, _ := issue(t, tokens, alice, 0)
	var shown []string
	outside := authority(func(token string) (auth.Principal, error) {
		shown = append(shown, token)
		if token == "down" {
			return auth.Principal{}, &auth.Unavailable{Backend: "test", Err: errors.New("no answer"), Retry: time.Second}
		}
		return auth.Principal{}, &auth.Unknown{Detail: "invalid token", Reason: "told so"}
	})
	chain := auth.Chain{keys, tokens, outside}
	for token, want := range map[string]string{"skep_op_root-of-the-host": "default/operator:root", text: "acme/user:alice"} {
		if p, err := chain.Authenticate(t.Context(), token); err != nil || p.String() != want {
			t.Errorf("%q is %v, %v", token, p, err)
		}
	}
	for _, token := range []string{"skep_nobody", ""} {
		if _, err := chain.Authenticate(t.Context(), token); !errors.Is(err, auth.ErrUnknown) {
			t.Errorf("%q: %v", token, err)
		}
	}
	var gone *auth.Unavailable
	if _, err := chain.Authenticate(t.Context(), "down"); !errors.As(err, &gone) || errors.Is(err, auth.ErrUnknown) {
		t.Errorf("down: %v", err)
	}
	var told *auth.Unknown
	if _, err := chain.Authenticate(t.Context(), "other"); !errors.As(err, &told) || told.Detail != "invalid token" {
		t.Errorf("other: %v", err)
	}
	slices.Sort(shown)
	if want := []string{"", "down", "other"}; !slices.Equal(shown, want) {
		t.Errorf("the outside saw %q, want %q", shown, want)
	}
	if _, err := (auth.Chain{}).Authenticate(t.Context(), "x"); !errors.Is(err, auth.ErrUnknown) {
		t.Errorf("an empty chain: %v", err)
	}
}

type authority func(token string) (auth.Principal, error)

func (a authority) Claims(string) bool { return true }

func (a authority) Authenticate(_ context.Context, token string) (auth.Principal, error) {
	return a(token)
}

func TestSpeaks(t *testing.T) {
	t.Parallel()
	for p, want := range map[auth.Principal]string{
		{Role: auth.Agent, ID: "depot"}:                 "depot",
		{Role: auth.Agent, ID: "key-2", Peer: "harbor"}: "harbor",
		{Role: auth.User, ID: "alice"}:                  "",
	} {
		if got := p.PeerSwarm(); got != want {
			t.Errorf("%v speaks for %q, want %q", p, got, want)
		}
	}
}

func BenchmarkTokens(b *testing.B) {
	l := newLedger()
	tokens, err := auth.OpenTokens(b.Context(), l, nil)
	if err != nil {
		b.Fatal(err)
	}
	var text string
	for range 9_000 {
		if text, _, err = tokens.Issue(b.Context(), alice, time.Hour, "", ""); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := tokens.Authenticate(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
}
