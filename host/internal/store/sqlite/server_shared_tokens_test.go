package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/store/pgtest"
)

// TestSharedTokens: whatever three hosts issue, revoke, use and save, once they have read the tokens
// again each accepts what is valid and nothing else. A host whose memory is old undoes nothing.
func TestSharedTokens(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	now := time.Unix(1e9, 0)
	var hosts []*auth.Tokens
	for range 3 {
		s := openShared(t, dsn)
		tokens, err := auth.OpenTokens(t.Context(), s, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		tokens.Share(auth.TokenSharing{Find: s.FindToken, IsCurrent: func() bool { return true }})
		hosts = append(hosts, tokens)
	}
	const seeds, rounds, steps = 3, 8, 12
	for seed := range uint64(seeds) {
		rnd := rand.New(rand.NewPCG(seed, 20))
		m := tokenModel{hosts: hosts, valid: map[string]bool{}, ids: map[string]string{}}
		for round := range rounds {
			for range steps {
				now = now.Add(time.Duration(rnd.IntN(50)) * time.Minute)
				m.step(t, rnd, fmt.Sprint("tenant", seed))
			}
			m.check(t, round)
		}
	}
}

// tokenModel is which tokens are valid.
type tokenModel struct {
	hosts []*auth.Tokens
	texts []string
	valid map[string]bool
	ids   map[string]string
}

// step does something at a host.
func (m *tokenModel) step(t *testing.T, rnd *rand.Rand, tenant string) {
	t.Helper()
	host := m.hosts[rnd.IntN(len(m.hosts))]
	what := rnd.IntN(5)
	if what == 0 || len(m.texts) == 0 {
		text, i, err := host.Issue(t.Context(), auth.Principal{Tenant: tenant, Role: auth.User, ID: "ada"}, 0, "", "ada")
		if err != nil {
			t.Fatal(err)
		}
		m.texts, m.valid[text], m.ids[text] = append(m.texts, text), true, i.ID
		return
	}
	var err error
	text := m.texts[rnd.IntN(len(m.texts))]
	switch what {
	case 1:
		if _, err = host.Revoke(t.Context(), m.ids[text]); err == nil {
			m.valid[text] = false
		} else if err == auth.ErrNoToken { // it has not read that yet
			err = nil
		}
	case 2:
		_, used := host.Authenticate(t.Context(), text)
		if used != nil && m.valid[text] {
			err = used
		}
	case 3:
		err = host.Save(t.Context())
	case 4:
		err = host.Refresh(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// check lets all hosts read the tokens and compares what they accept.
func (m *tokenModel) check(t *testing.T, round int) {
	t.Helper()
	for n, host := range m.hosts {
		if err := host.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, text := range m.texts {
			if _, err := host.Authenticate(t.Context(), text); (err == nil) != m.valid[text] {
				t.Fatalf("round %d: host %d: token %d is valid: %v, Authenticate() = %v", round, n, i, m.valid[text], err)
			}
		}
	}
}

// TestSharedTokenOfBlocked: tokens of a tenant that the hosts are about to remove open nothing, also before the
// erasure is noted.
func TestSharedTokenOfBlocked(t *testing.T) {
	t.Parallel()
	s := openShared(t, pgtest.Schema(t))
	token := auth.IssuedToken{ID: "i", Principal: auth.Principal{Tenant: "acme", Role: auth.User, ID: "ada"}}
	if err := s.AddToken(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FindToken(t.Context(), token.SHA256); err != nil {
		t.Error(err)
	}
	s.BlockTenant("acme")
	if _, err := s.FindToken(t.Context(), token.SHA256); !errors.Is(err, auth.ErrNoToken) {
		t.Errorf("FindToken() = %v", err)
	}
	if all, err := s.Tokens(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("Tokens() = %+v, %v", all, err)
	}
}

// versionOf is the number of a version.
func versionOf(t *testing.T, s *Store, version string) (n int64) {
	t.Helper()
	err := s.readers.db.QueryRowContext(t.Context(), "SELECT coalesce(max(n), 0) FROM changes WHERE name = ?", version).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSharedTokenVersion: what other hosts must read again raises the version in one group with it.
func TestSharedTokenVersion(t *testing.T) {
	t.Parallel()
	s := openShared(t, pgtest.Schema(t))
	version := func() int64 { return versionOf(t, s, TokensVersion) }
	token := auth.IssuedToken{ID: "i", Principal: auth.Principal{Tenant: "acme", Role: auth.User, ID: "ada"}}
	if err := s.AddToken(t.Context(), token); err != nil || version() != 1 {
		t.Errorf("AddToken() = %v, the version is %d", err, version())
	}
	if err := s.AddToken(t.Context(), token); err == nil || version() != 1 {
		t.Errorf("AddToken() again = %v, the version is %d", err, version())
	}
	if err := s.UpdateTokens(t.Context(), []auth.IssuedToken{token}); err != nil || version() != 2 {
		t.Errorf("UpdateTokens() = %v, the version is %d", err, version())
	}
	if err := s.DropTokens(t.Context(), []string{"i"}); err != nil || version() != 3 {
		t.Errorf("DropTokens() = %v, the version is %d", err, version())
	}
}
