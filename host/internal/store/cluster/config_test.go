package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"skep/host/internal/store/pgtest"
)

// testConfig is a configuration in memory.
type testConfig struct {
	running, file, prepared map[string]string
	// fails is what Prepare returns.
	fails error
	// persisted is what Persist has stored last, failsPersist what it returns.
	persisted    map[string]string
	failsPersist error
}

func (c *testConfig) Running() map[string]string { return c.running }

func (c *testConfig) Prepare(_ context.Context, check func(map[string]string) error) error {
	if c.prepared != nil {
		return errors.New("something is prepared already")
	}
	if c.fails != nil {
		return c.fails
	}
	if err := check(c.file); err != nil {
		return err
	}
	c.prepared = maps.Clone(c.file)
	return nil
}

func (c *testConfig) Adopt(context.Context) error {
	c.running, c.prepared = c.prepared, nil
	return nil
}

func (c *testConfig) Drop() { c.prepared = nil }

func (c *testConfig) Persist(context.Context) error {
	c.persisted = maps.Clone(c.running)
	return c.failsPersist
}

// configHost is a host that shares a configuration whose only part is of a value.
type configHost struct {
	*testHost
	config *testConfig
}

func parts(value string) map[string]string { return map[string]string{"agent boss": value} }

func joinConfigHost(t *testing.T, dsn, value string) configHost {
	t.Helper()
	h := configHost{joinHost(t, dsn), &testConfig{running: parts(value), file: parts(value)}}
	h.ShareConfig(h.config)
	return h
}

// begin lets a host see that it is like the others, and give its first sign of life.
func (h configHost) begin(t *testing.T) error {
	t.Helper()
	if err := errors.Join(h.readAll(t.Context(), h.now, false), h.beginConfig(t.Context())); err != nil {
		return err
	}
	return h.Beat(t.Context())
}

func configHosts(t *testing.T, n int) (dsn string, hosts []configHost) {
	t.Helper()
	dsn = pgtest.Schema(t)
	for range n {
		h := joinConfigHost(t, dsn, "1")
		if err := h.begin(t); err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	return dsn, hosts
}

// agree lets a host propose its file while the others look at it once.
func agree(t *testing.T, from configHost, others ...configHost) error {
	t.Helper()
	end := make(chan error)
	go func() { end <- from.AgreeConfig(t.Context(), from.config.file) }()
	for open := false; !open; {
		st, err := from.readConfig(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		open = st.proposer == from.opts.HID
	}
	for _, h := range others {
		h.follow(t)
	}
	return <-end
}

func (h configHost) follow(t *testing.T) {
	t.Helper()
	if err := h.followOnce(t.Context()); err != nil {
		t.Fatalf("host %d: %v", h.opts.HID, err)
	}
}

func (h configHost) wantRunning(t *testing.T, value string) {
	t.Helper()
	if !maps.Equal(h.config.running, parts(value)) || h.config.prepared != nil {
		t.Errorf("host %d runs %v and has prepared %v, want %s", h.opts.HID, h.config.running, h.config.prepared, value)
	}
}

// TestConfigAgreed: what all hosts have prepared is adopted by all, also if the host that has proposed it dies
// before it adopts it itself.
func TestConfigAgreed(t *testing.T) {
	t.Parallel()
	dsn, hosts := configHosts(t, 3)
	for _, h := range hosts {
		h.config.file = parts("2")
	}
	if err := agree(t, hosts[0], hosts[1], hosts[2]); err != nil {
		t.Fatal(err)
	}
	change(t, dsn, fmt.Sprintf("UPDATE hosts SET dead = true WHERE hid = %d", hosts[0].opts.HID))
	for _, h := range hosts[1:] {
		h.follow(t)
		h.wantRunning(t, "2")
	}
	late := joinConfigHost(t, dsn, "1")
	if err := late.begin(t); err == nil || !strings.Contains(err.Error(), "its file differs in agent boss") {
		t.Errorf("a host with another file: %v", err)
	}
	late.config.file = parts("2")
	if err := late.begin(t); err != nil {
		t.Error(err)
	}
	late.wantRunning(t, "2")
}

// TestConfigRefused: a host that cannot prepare what is proposed, or has another file, keeps all from it.
func TestConfigRefused(t *testing.T) {
	t.Parallel()
	_, hosts := configHosts(t, 3)
	for _, h := range hosts {
		h.config.file = parts("2")
	}
	for why, set := range map[string]func(*testConfig){
		"a module is missing":        func(c *testConfig) { c.fails = errors.New("a module is missing") },
		"its file differs in agent ": func(c *testConfig) { c.fails, c.file = nil, parts("3") },
	} {
		set(hosts[2].config)
		err := agree(t, hosts[0], hosts[1], hosts[2])
		want := "nothing has changed: the host at " + hosts[2].opts.Address + " cannot follow: " + why
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		for _, h := range hosts {
			h.follow(t)
			h.wantRunning(t, "1")
		}
	}
}

// TestConfigWithdrawn: a host that dies while others vote has changed nothing, and another one may propose.
func TestConfigWithdrawn(t *testing.T) {
	t.Parallel()
	dsn, hosts := configHosts(t, 3)
	for _, h := range hosts {
		h.config.file = parts("2")
	}
	st, err := hosts[0].readConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	change(t, dsn, fmt.Sprintf("UPDATE inforce SET proposal = proposal + 1, proposer = %d, proposed = '%s'",
		hosts[0].opts.HID, hosts[0].configText(parts("2"))))
	hosts[1].follow(t)
	if hosts[1].config.prepared == nil {
		t.Fatal("nothing is prepared")
	}
	if err := hosts[1].AgreeConfig(t.Context(), parts("2")); !errors.Is(err, errReloading) {
		t.Errorf("a second reload: %v", err)
	}
	change(t, dsn, fmt.Sprintf("UPDATE hosts SET dead = true WHERE hid = %d", hosts[0].opts.HID))
	hosts[1].follow(t)
	hosts[1].wantRunning(t, "1")
	if err := agree(t, hosts[1], hosts[2]); err != nil {
		t.Error(err)
	}
	hosts[2].follow(t)
	hosts[2].wantRunning(t, "2")
	if now, err := hosts[1].readConfig(t.Context()); err != nil || now.generation <= st.generation {
		t.Errorf("%+v, %v", now, err)
	}
}

// TestConfigLeft: a proposal whose host lives but has given it up, without having been able to say so, is
// withdrawn by that host.
func TestConfigLeft(t *testing.T) {
	t.Parallel()
	dsn, hosts := configHosts(t, 2)
	change(t, dsn, fmt.Sprintf("UPDATE inforce SET proposal = proposal + 1, proposer = %d, proposed = '%s'",
		hosts[0].opts.HID, hosts[0].configText(parts("1"))))
	hosts[1].follow(t)
	hosts[0].follow(t)
	hosts[1].follow(t)
	for _, h := range hosts {
		h.wantRunning(t, "1")
	}
	if err := agree(t, hosts[1], hosts[0]); err != nil {
		t.Error(err)
	}
}

// TestConfigJoined: a host that has come after the votes were read has to vote as well.
func TestConfigJoined(t *testing.T) {
	t.Parallel()
	dsn, hosts := configHosts(t, 1)
	a := hosts[0]
	const propose = "UPDATE inforce SET proposal = proposal + 1, proposer = %d, proposed = '%s'"
	change(t, dsn, fmt.Sprintf(propose, a.opts.HID, a.configText(parts("2"))))
	st, err := a.readConfig(t.Context())
	if err == nil {
		err = a.vote(t.Context(), st.proposal, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	late := joinConfigHost(t, dsn, "1")
	if err := late.begin(t); err != nil {
		t.Fatal(err)
	}
	if done, err := a.settle(t.Context(), st.proposal); done || err != nil {
		t.Errorf("in force without the vote of a host that lives: %v, %v", done, err)
	}
	if n, err := a.changeConfig(t.Context(), commitProposal, st.proposal, a.opts.HID); n != 0 || err != nil {
		t.Errorf("in force without the vote of a host that lives: %d, %v", n, err)
	}
	late.config.file = parts("2")
	late.follow(t)
	if done, err := a.settle(t.Context(), st.proposal); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
}

// TestConfigAlone: a host that starts alone puts its file in force, of two that do the first one; the hosts that
// were killed before are not waited for. It stores its definition again first, which others may have dropped.
func TestConfigAlone(t *testing.T) {
	t.Parallel()
	dsn, hosts := configHosts(t, 2)
	a, b := joinConfigHost(t, dsn, "2"), joinConfigHost(t, dsn, "3")
	for range int(testTTL/testBeat) + 2 { // hosts are silent
		for _, h := range []configHost{a, b} {
			h.pass(testBeat)
			if err := h.readAll(t.Context(), h.now, false); err != nil {
				t.Fatal(err)
			}
			h.fenceSilent(t.Context())
		}
	}
	if err := hosts[0].Beat(t.Context()); !errors.Is(err, ErrFenced) {
		t.Errorf("a host that was silent: %v", err)
	}
	a.config.failsPersist = errors.New("a store that fails for a moment")
	if err := a.begin(t); !errors.Is(err, a.config.failsPersist) {
		t.Errorf("a host whose definition is not stored: %v", err)
	}
	a.config.persisted, a.config.failsPersist = nil, nil
	if err := a.begin(t); err != nil || !maps.Equal(a.config.persisted, parts("2")) {
		t.Errorf("a host that is alone: %v, it has stored %v again", err, a.config.persisted)
	}
	if err := b.begin(t); err == nil {
		t.Error("two hosts have put their files in force")
	}
	upgraded := joinConfigHost(t, dsn, "4")
	upgraded.opts.Version = "2"
	if err := upgraded.begin(t); err != nil {
		t.Errorf("a host of another version: %v", err)
	}
	upgraded.config.file = parts("2")
	if err := agree(t, upgraded, a); err == nil || !strings.Contains(err.Error(), "of one version") {
		t.Errorf("a reload of two versions: %v", err)
	}
}

// TestConfigOfNoMember: a host that has given no sign of life proposes nothing, and a proposal of such a host
// keeps no other from a reload: nobody would fence it.
func TestConfigOfNoMember(t *testing.T) {
	t.Parallel()
	dsn, hosts := configHosts(t, 2)
	waits := joinConfigHost(t, dsn, "2")
	if err := waits.AgreeConfig(t.Context(), waits.config.file); !errors.Is(err, errNoMember) {
		t.Errorf("AgreeConfig = %v", err)
	}
	change(t, dsn, fmt.Sprintf("UPDATE inforce SET proposal = proposal + 1, proposer = %d, proposed = '%s'",
		waits.opts.HID, waits.configText(parts("2"))))
	for _, h := range hosts {
		h.follow(t)
		h.config.file = parts("3")
	}
	if err := agree(t, hosts[0], hosts[1]); err != nil {
		t.Error(err)
	}
}

// TestConfigOfFenced: a host that the others have fenced puts nothing in force: they have dropped it.
func TestConfigOfFenced(t *testing.T) {
	t.Parallel()
	dsn, hosts := configHosts(t, 1)
	a := hosts[0]
	change(t, dsn, fmt.Sprintf("UPDATE inforce SET proposal = proposal + 1, proposer = %d, proposed = '%s'", a.opts.HID, a.configText(parts("2"))))
	st, err := a.readConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	change(t, dsn, "UPDATE hosts SET dead = true")
	if n, err := a.changeConfig(t.Context(), commitProposal, st.proposal, a.opts.HID); n != 0 || err != nil {
		t.Errorf("a fenced host has put its file in force: %d, %v", n, err)
	}
}

// TestConfigBeforeSlots: a host takes no slots before it has seen, as one that is alive, that it runs what is in
// force: what it saw before its first sign of life may have been replaced without its vote.
func TestConfigBeforeSlots(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Schema(t)
	a, b := joinConfigHost(t, dsn, "1"), joinConfigHost(t, dsn, "2")
	if err := errors.Join(a.readAll(t.Context(), a.now, false), a.beginConfig(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := b.begin(t); err != nil { // it is alone
		t.Fatal(err)
	}
	a.step(t)
	if n := a.Count(); n > 0 {
		t.Errorf("%d slots of a host that has not looked since its first sign of life", n)
	}
	if err := a.followOnce(t.Context()); !errors.Is(err, errConfig) {
		t.Errorf("followOnce = %v", err)
	}
	b.step(t)
	b.follow(t)
	a.step(t)
	b.step(t)
	if n, m := a.Count(), b.Count(); n > 0 || m == 0 {
		t.Errorf("%d slots of the host with another file, %d of the one whose file is in force", n, m)
	}
	a.config.file = parts("2")
	a.follow(t)
	a.step(t)
	b.step(t)
	a.step(t)
	if n := a.Count(); n == 0 {
		t.Error("no slots of a host that runs what is in force")
	}
}

// TestRefusalText: any refusal can be written to the server.
func TestRefusalText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a\x00b\xff", "nothing has changed: nothing has changed, because x", strings.Repeat("ü", maxRefusal)} {
		got := refusalText(errors.New(text))
		if len(got) == 0 || len(got) > maxRefusal || !utf8.ValidString(got) || strings.Contains(got, "\x00") || strings.HasPrefix(got, "nothing has changed") {
			t.Errorf("%.20q is %.20q", text, got)
		}
	}
}

// TestConfigAlike: a host that waits for its file to be in force does not run what the others do, and a host of
// another version may not.
func TestConfigAlike(t *testing.T) {
	t.Parallel()
	dsn, hosts := configHosts(t, 2)
	want := func(h configHost, alike bool, when string) {
		t.Helper()
		if h.IsAlike() != alike {
			t.Errorf("%s, host %d is alike: %v", when, h.opts.HID, !alike)
		}
	}
	for _, h := range hosts {
		h.follow(t)
		want(h, true, "with one file")
	}
	waits := joinConfigHost(t, dsn, "2")
	if err := waits.begin(t); err == nil {
		t.Fatal("a host with another file gives a sign of life")
	}
	want(waits, false, "with another file")
	want(hosts[0], true, "beside a host that has begun nothing")
	change(t, dsn, fmt.Sprintf("UPDATE roster SET version = 'older' WHERE hid = %d", hosts[1].opts.HID))
	if err := hosts[0].Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(hosts[0], false, "beside an older version")
}
