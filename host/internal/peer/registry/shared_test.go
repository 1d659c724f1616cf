package registry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/peer/registry"
	"skep/host/internal/swarm"
)

var errAway = errors.New("the store is away")

// memory is a store that hosts share. Its next calls fail before they happen (away), or after a change has (lost). before
// is called once before the next change.
type memory struct {
	mu         sync.Mutex
	records    []registry.Record
	revision   int
	away, lost int
	before     func()
}

func (m *memory) Swarms(ctx context.Context) ([]registry.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away > 0 {
		m.away--
		return nil, errAway
	}
	return slices.Clone(m.records), ctx.Err()
}

func (m *memory) SwapSwarm(_ context.Context, was registry.Record, text []byte) (is registry.Record, ok bool, err error) {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away > 0 {
		m.away--
		return is, false, errAway
	}
	i := slices.IndexFunc(m.records, func(r registry.Record) bool { return r.Name == was.Name })
	if (i >= 0) != (was.Revision != nil) || i >= 0 && !bytes.Equal(m.records[i].Revision, was.Revision) {
		return is, false, nil
	}
	m.revision++
	is = registry.Record{Name: was.Name, Text: text, Revision: fmt.Append(nil, m.revision)}
	switch {
	case text == nil:
		m.records = slices.Delete(m.records, i, i+1)
	case i < 0:
		m.records = append(m.records, is)
	default:
		m.records[i] = is
	}
	if m.lost > 0 {
		m.lost--
		return is, false, errAway
	}
	return is, true, nil
}

// unhealthySwarm serves a swarm that describes itself and fails its health check.
func unhealthySwarm(t *testing.T) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/health") {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte(`{"protocol_version":"1.3","swarm":{"description":"parts"}}`))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// hostsOf opens the registries of two hosts that share a store.
func hostsOf(t *testing.T) (m *memory, a, b *registry.Registry) {
	t.Helper()
	m = &memory{}
	return m, open(t, registry.Options{Store: m}), open(t, registry.Options{Store: m})
}

func refresh(t *testing.T, all ...*registry.Registry) {
	t.Helper()
	for _, r := range all {
		if err := r.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// token is what a host shows a swarm.
func token(r *registry.Registry, name string) string {
	text, _ := r.Token(name)
	return text
}

// TestShared: a swarm that one host has registered is known to the others with its token once they have read it, also
// after a restart, and so are changes and its removal. One that is registered for a while is the one host's.
func TestShared(t *testing.T) {
	t.Parallel()
	url := unhealthySwarm(t)
	m, a, b := hostsOf(t)
	register(t, a, registry.Request{Name: "depot", BaseURL: url, Token: "first"})
	register(t, a, registry.Request{Name: "yard", BaseURL: url, Token: "volatile", Volatile: true})
	refresh(t, a, b)
	third := open(t, registry.Options{Store: m})
	for _, r := range []*registry.Registry{b, third} {
		if got := names(r); !slices.Equal(got, []string{"depot"}) || token(r, "depot") != "first" || entry(t, r, "depot").Description != "parts" {
			t.Errorf("known are %q, depot with the token %q", got, token(r, "depot"))
		}
	}
	if got := names(a); !slices.Equal(got, []string{"depot", "yard"}) || token(a, "yard") != "volatile" {
		t.Errorf("known are %q, yard with the token %q", got, token(a, "yard"))
	}
	// Another host changes it, before the first has read that.
	register(t, b, registry.Request{Name: "depot", BaseURL: url + "/other", Token: "${SWARM_AUTH_TOKEN_DEPOT}", Operator: true})
	refresh(t, a)
	if e := entry(t, a, "depot"); e.BaseURL != url+"/other" || token(a, "depot") != "" {
		t.Errorf("%+v with the token %q", e, token(a, "depot"))
	}
	if _, err := a.Remove(t.Context(), "depot", true); err != nil {
		t.Fatal(err)
	}
	refresh(t, b)
	if len(names(b)) != 0 || len(m.records) != 0 {
		t.Errorf("known are %q, kept %v", names(b), m.records)
	}
	if bytes.Contains(fmt.Append(nil, m.records), []byte("volatile")) {
		t.Error("a token of a swarm that does not last is kept")
	}
}

// TestSharedAtOnce: of two hosts that register one name at the same moment the later one counts, and what the other host
// has done meanwhile is checked: an admin does not move a swarm whose token is in a variable.
func TestSharedAtOnce(t *testing.T) {
	t.Parallel()
	url := unhealthySwarm(t)
	m, a, b := hostsOf(t)
	m.before = func() { register(t, b, registry.Request{Name: "depot", BaseURL: url + "/b", Token: "b-token"}) }
	var refused *swarm.Refusal
	if _, err := a.Register(t.Context(), registry.Request{Name: "depot", BaseURL: url + "/a", Token: "a-token"}); !errors.As(err, &refused) {
		t.Errorf("an admin has moved what another host has registered meanwhile: %v", err)
	}
	m.before = func() {
		register(t, b, registry.Request{Name: "depot", BaseURL: url + "/c", Token: "c-token", Operator: true})
	}
	register(t, a, registry.Request{Name: "depot", BaseURL: url + "/a", Token: "a-token", Operator: true})
	m.before = func() {
		register(t, b, registry.Request{Name: "depot", BaseURL: url + "/d", Token: "d-token", Operator: true})
	}
	if _, err := a.Remove(t.Context(), "depot", true); err != nil {
		t.Error(err)
	}
	refresh(t, a, b)
	if len(names(a))+len(names(b))+len(m.records) != 0 {
		t.Errorf("known are %q and %q, kept %v", names(a), names(b), m.records)
	}
}

// TestSharedStoreFails: a store that fails for a moment changes nothing that is known, and an answer that was lost leaves
// what the store has.
func TestSharedStoreFails(t *testing.T) {
	t.Parallel()
	url := unhealthySwarm(t)
	m, a, _ := hostsOf(t)
	q := registry.Request{Name: "depot", BaseURL: url, Token: "first"}
	m.away = 1
	if _, err := a.Register(t.Context(), q); !errors.Is(err, errAway) || len(names(a)) != 0 {
		t.Errorf("registered without a store: %v, known are %q", err, names(a))
	}
	m.lost = 1
	if _, err := a.Register(t.Context(), q); !errors.Is(err, errAway) || token(a, "depot") != "first" {
		t.Errorf("the answer was lost: %v, the token is %q", err, token(a, "depot"))
	}
	m.away = 1
	if err := a.Refresh(t.Context()); !errors.Is(err, errAway) || !slices.Equal(names(a), []string{"depot"}) {
		t.Errorf("read without a store: %v, known are %q", err, names(a))
	}
	m.lost = 1
	if _, err := a.Remove(t.Context(), "depot", true); !errors.Is(err, errAway) || len(names(a)) != 0 {
		t.Errorf("the answer was lost: %v, known are %q", err, names(a))
	}
}

// TestSharedDamaged: a record that cannot be read hides no other, keeps no host from starting, and is replaced by a
// registration or removed by the operator.
func TestSharedDamaged(t *testing.T) {
	t.Parallel()
	url := unhealthySwarm(t)
	m, a, _ := hostsOf(t)
	register(t, a, registry.Request{Name: "depot", BaseURL: url, Token: "first"})
	for i, text := range []string{"{", `{"swarm_name":"other","base_url":"https://x.example"}`, `{"swarm_name":"c2","base_url":"https://x.example","auth_token_ref":"${HOME}"}`} {
		m.records = append(m.records, registry.Record{Name: fmt.Sprint("c", i), Text: []byte(text), Revision: []byte{0xff, byte(i)}})
	}
	m.records = append(m.records, registry.Record{Name: "c3", Damaged: errors.New("sealed with another key"), Revision: []byte("x")})
	b := open(t, registry.Options{Store: m})
	if !slices.Equal(names(b), []string{"depot"}) {
		t.Errorf("known are %q", names(b))
	}
	if _, err := registry.FileOf(m.records); err == nil || !strings.Contains(err.Error(), "c0") || !strings.Contains(err.Error(), "c3") {
		t.Errorf("a file of damaged records: %v", err)
	}
	register(t, b, registry.Request{Name: "c0", BaseURL: url, Token: "new"})
	for _, name := range []string{"c1", "c2", "c3"} {
		if _, err := b.Remove(t.Context(), name, false); !errors.Is(err, swarm.ErrNotFound) {
			t.Errorf("an admin has removed %s: %v", name, err)
		}
		if _, err := b.Remove(t.Context(), name, true); err != nil {
			t.Error(err)
		}
	}
	refresh(t, a)
	if got := names(a); !slices.Equal(got, []string{"depot", "c0"}) {
		t.Errorf("known are %q", got)
	}
}

// TestSharedCarryOver: the swarms in the file of a host go to the store at its start, once, whatever breaks off in
// between. What other hosts have registered stays.
func TestSharedCarryOver(t *testing.T) {
	t.Parallel()
	url := unhealthySwarm(t)
	m, a, _ := hostsOf(t)
	register(t, a, registry.Request{Name: "s1", BaseURL: url, Token: "theirs"})
	path := written(t, 3)
	m.lost = 1
	opt := registry.Options{Store: m, Path: path, Local: "hive"}
	if _, err := registry.Open(t.Context(), opt); !errors.Is(err, errAway) {
		t.Errorf("opened without an answer: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file: %v", err)
	}
	b := open(t, opt)
	got := names(b)
	if slices.Sort(got); !slices.Equal(got, []string{"s0", "s1", "s2"}) || token(b, "s1") != "theirs" {
		t.Errorf("known are %q, s1 with the token %q", got, token(b, "s1"))
	}
	if _, err := b.Remove(t.Context(), "s0", true); err != nil {
		t.Fatal(err)
	}
	if got := names(open(t, opt)); slices.Contains(got, "s0") {
		t.Errorf("known are %q again", got)
	}
	if _, err := os.Stat(path + ".moved"); err != nil {
		t.Error(err)
	}
	damaged := filepath.Join(t.TempDir(), "registry.json")
	if err := os.WriteFile(damaged, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Open(t.Context(), registry.Options{Store: m, Path: damaged}); err == nil || !strings.Contains(err.Error(), damaged) {
		t.Errorf("a damaged file: %v", err)
	}
}

// TestSharedKeepsHealth: what a host has learnt of a swarm stays when another swarm changes, and is not known of one that
// has changed itself.
func TestSharedKeepsHealth(t *testing.T) {
	t.Parallel()
	url := unhealthySwarm(t)
	_, a, b := hostsOf(t)
	register(t, a, registry.Request{Name: "depot", BaseURL: url, Token: "x"})
	refresh(t, b)
	if e, err := b.Ping(t.Context(), "depot"); err != nil || e.Active {
		t.Fatalf("%+v, %v", e, err)
	}
	register(t, a, registry.Request{Name: "yard", BaseURL: url + "/yard", Token: "x"})
	refresh(t, b)
	if e := entry(t, b, "depot"); e.Active || e.LastError == "" {
		t.Errorf("forgotten: %+v", e)
	}
	register(t, a, registry.Request{Name: "depot", BaseURL: url, Token: "y", Operator: true})
	refresh(t, b)
	if e := entry(t, b, "depot"); !e.Active || e.LastError != "" {
		t.Errorf("kept: %+v", e)
	}
}

// TestSharedShadowed: a registered swarm whose name [peers] takes is left out with its token, is said to be so once, and
// is there again when [peers] has the name no longer.
func TestSharedShadowed(t *testing.T) {
	t.Parallel()
	url := unhealthySwarm(t)
	m, a, _ := hostsOf(t)
	register(t, a, registry.Request{Name: "depot", BaseURL: url, Token: "registered"})
	var log strings.Builder
	b := open(t, registry.Options{Store: m, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	fixed := []registry.Static{{Name: "depot", BaseURL: url + "/fixed"}}
	b.SetStatic(fixed)
	refresh(t, b, b)
	e, _ := b.Entry("depot")
	if !e.Fixed || token(b, "depot") != "" || len(b.Entries()) != 1 {
		t.Errorf("shadowed: %+v, token %q", b.Entries(), token(b, "depot"))
	}
	if n := strings.Count(log.String(), "left out"); n != 1 {
		t.Errorf("it is said %d times that the swarm is left out: %s", n, log.String())
	}
	b.SetStatic(nil)
	e, ok := b.Entry("depot")
	if !ok || e.Fixed || e.BaseURL != url || token(b, "depot") != "registered" {
		t.Errorf("no longer shadowed: %t %+v, token %q", ok, e, token(b, "depot"))
	}
}

// TestSharedStoreHangs: a store that does not answer holds up changes alone.
func TestSharedStoreHangs(t *testing.T) {
	t.Parallel()
	url := unhealthySwarm(t)
	m, a, _ := hostsOf(t)
	register(t, a, registry.Request{Name: "depot", BaseURL: url})
	asked, answers := make(chan struct{}), make(chan struct{})
	m.before = func() {
		close(asked)
		<-answers
	}
	changed := make(chan error)
	go func() {
		_, err := a.Remove(t.Context(), "depot", true)
		changed <- err
	}()
	<-asked
	a.SetStatic([]registry.Static{{Name: "yard", BaseURL: url}})
	if _, ok := a.Entry("yard"); !ok {
		t.Error("a reload is not in force")
	}
	close(answers)
	if err := <-changed; err != nil {
		t.Fatal(err)
	}
	if list := a.Entries(); len(list) != 1 || list[0].Name != "yard" {
		t.Errorf("after the change: %+v", list)
	}
}

// TestSharedReloadBesideChanges: a reload waits for no change, and both go by what was read (the race detector looks on).
func TestSharedReloadBesideChanges(t *testing.T) {
	t.Parallel()
	url := unhealthySwarm(t)
	_, a, _ := hostsOf(t)
	register(t, a, registry.Request{Name: "depot", BaseURL: url})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			a.SetStatic([]registry.Static{{Name: "yard", BaseURL: url}})
		}
	}()
	for range 20 {
		if _, err := a.Remove(t.Context(), "absent", true); err == nil {
			t.Error("an unknown swarm was removed")
		}
	}
	<-done
	if got := names(a); !slices.Equal(got, []string{"yard", "depot"}) {
		t.Errorf("known are %q", got)
	}
}
