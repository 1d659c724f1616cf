package federation_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/hosttest"
	"skep/host/internal/swarm"
	"skep/host/mailtest/refpeer"
	"skep/spec/mail"
)

// pair is a host and a reference server that know each other. The reference's
// entrypoint is chief, which no agent of the host is called.
type pair struct {
	*federation
	t     *testing.T
	local *hosttest.Site
	beta  *refpeer.Peer
}

// newPair starts both. The host knows more peers, of which there are links alone.
func newPair(t *testing.T, opt refpeer.Options, more ...string) *pair {
	t.Helper()
	p := &pair{federation: newFederation(t, "1m", []string{"hive"}, append(more, "beta")...), t: t}
	p.local = p.sites["hive"]
	opt.Name, opt.Entrypoint, opt.Agents = "beta", "chief", []string{"chief", "analyst"}
	opt.Keys = map[string]string{hosttest.PeerKey("hive", "beta"): "hive"}
	beta, err := refpeer.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(beta.Close)
	p.beta = beta
	p.links["beta"].setTarget(beta.URL())
	if err := beta.Register("hive", p.links["hive"].URL, hosttest.PeerKey("beta", "hive")); err != nil {
		t.Fatal(err)
	}
	return p
}

// exchanges renders the reference's exchanges: what it got and what it sent.
func (p *pair) exchanges() (lines []string) {
	p.t.Helper()
	for _, e := range p.beta.Log() {
		var in struct {
			Message struct {
				Kind    string `json:"msg_type"`
				Payload struct{ Subject string }
			}
		}
		if err := json.Unmarshal(e.Body, &in); err != nil {
			p.t.Fatal(err)
		}
		way := "hive>"
		if e.Out {
			way = "beta>"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s [%s] %d", way, strings.TrimPrefix(e.Path, "/interswarm/"), in.Message.Kind, in.Message.Payload.Subject, e.Status))
	}
	return lines
}

// wantExchanges waits until just this has been said, and looks at every wrapper of the
// host: the schema takes it, it has what the reference demands, and no secret.
func (p *pair) wantExchanges(want ...string) {
	p.t.Helper()
	open := func() bool {
		return len(p.exchanges()) < len(want) || slices.ContainsFunc(p.beta.Log(), func(e refpeer.Exchange) bool { return e.Status == 0 })
	}
	for end := time.Now().Add(time.Minute); open() && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
	}
	if diff := cmp.Diff(want, p.exchanges()); diff != "" {
		p.t.Fatalf("the exchange (-want +got):\n%s", diff)
	}
	for _, e := range p.beta.Log() {
		if e.Out {
			continue
		}
		var in struct{ Message json.RawMessage }
		var must struct {
			Token    *string `json:"auth_token"`
			Metadata *map[string]any
		}
		if err := json.Unmarshal(e.Body, &in); err != nil {
			p.t.Fatal(err)
		}
		if _, err := mail.ParseInterswarm(in.Message); err != nil {
			p.t.Errorf("%v: %s", err, in.Message)
		}
		if err := json.Unmarshal(in.Message, &must); err != nil || must.Token == nil || *must.Token != "" || must.Metadata == nil {
			p.t.Errorf("auth_token must be empty, metadata an object: %s", in.Message)
		}
		if got, want := e.Header.Get("User-Agent"), "MAIL-Interswarm-Router/hive"; got != want {
			p.t.Errorf("User-Agent %q, want %q", got, want)
		}
	}
}

// waitDelivered waits until all outbox messages of a task are acknowledged. A host
// that stops before would send the last again.
func (p *pair) waitDelivered(task string) {
	p.t.Helper()
	hosttest.Eventually(p.t, "the letters of "+task+" are out", func() bool {
		parts, err := hosttest.TaskParts(p.t, p.local.Data, task)
		return err == nil && !slices.ContainsFunc(parts, func(s swarm.Snapshot) bool { return len(s.Outbox) > 0 })
	})
}

// waitEnded waits until the host's part of a task has ended.
func (p *pair) waitEnded(task string) (part swarm.Snapshot) {
	p.t.Helper()
	hosttest.Eventually(p.t, "the host's part of "+task+" ends", func() bool {
		parts, err := hosttest.TaskParts(p.t, p.local.Data, task)
		if err != nil || len(parts) > 1 {
			p.t.Fatal(parts, err)
		}
		if len(parts) == 1 {
			part = parts[0]
		}
		return len(parts) == 1 && part.Task.State.Ended() && len(part.Outbox) == 0
	})
	return part
}

// wantStatus looks at the status of what the reference has sent.
func (p *pair) wantStatus(status int) func(int, error) {
	return func(got int, err error) {
		p.t.Helper()
		if got != status || err != nil {
			p.t.Errorf("status %d, %v, want %d", got, err, status)
		}
	}
}
