package rest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/api/rest"
	"skep/host/internal/telemetry/pulse"
)

// fakeRoster is the hosts that are alive; the second is so until it was asked for left times.
type fakeRoster struct {
	fakeCluster
	left *atomic.Int32
}

func (r fakeRoster) Hosts() (list []rest.ClusterHost, level int) {
	list = []rest.ClusterHost{{ID: 1, Address: "http://a.example", Self: true}}
	if r.left.Add(-1) >= 0 {
		list = append(list, rest.ClusterHost{ID: 2, Address: "http://b.example"})
	}
	return list, 1
}

// clusterPair returns hosts a and b, which share a roster that has b until it was asked for so many
// times, and a function after which b cannot be connected to.
func clusterPair(t *testing.T, asked int32) (a, b *testHost, cut func()) {
	key := []byte("a key of hosts")
	withHost := func(name string, others *rest.OtherHosts, cluster rest.Cluster) func(h *testHost) {
		return func(h *testHost) {
			h.opt.Pulse, h.opt.OtherHosts, h.opt.Cluster = pulse.NewRing(name, 64), others, cluster
		}
	}
	left := &atomic.Int32{}
	left.Store(asked)
	all := &atomic.Int32{}
	all.Store(1 << 30)
	b = newTestHost(t, withHost("http://b.example", rest.NewOtherHosts(oneOwner(""), key, time.Minute), fakeRoster{left: all}))
	var isCut atomic.Bool
	others := rest.NewOtherHosts(oneOwner(""), key, time.Minute)
	others.DialBy(func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != "b.example:80" || isCut.Load() {
			return nil, errors.New("no way")
		}
		return new(net.Dialer).DialContext(ctx, network, b.server.Listener.Addr().String())
	})
	a = newTestHost(t, withHost("http://a.example", others, fakeRoster{left: left}))
	return a, b, func() { isCut.Store(true) }
}

// The feed of each host of a cluster can be read through any of them: with the ids of the host
// that is named, which resets, pings and the answer name, and within the caller's role there.
func TestPulseOfHost(t *testing.T) {
	t.Parallel()
	a, b, cut := clusterPair(t, 1<<30)
	for _, user := range []string{"alice", "bob"} {
		for _, h := range []*testHost{a, b} {
			h.opt.Pulse.Publish(pulse.Event{Kind: pulse.Mail, Tenant: "default", Swarm: "hive", Instance: "user:" + user, Task: user + "-at-" + h.opt.Pulse.Host()})
		}
	}
	read := func(token, query, last string) []sse {
		got := a.do(request{path: "/skep/v1/pulse?kept=true" + query, token: token, header: http.Header{"Last-Event-Id": {last}}})
		if got.status != http.StatusOK {
			t.Fatalf("%s: %d %s", query, got.status, got.body)
		}
		return events(t, got.body)
	}
	for _, c := range []struct {
		token, query, last string
		of                 *testHost
		want               []string
	}{
		{operatorToken, "", "", a, []string{"alice-at-http://a.example", "bob-at-http://a.example"}},
		{operatorToken, "&host=http://a.example", "", a, []string{"alice-at-http://a.example", "bob-at-http://a.example"}},
		{operatorToken, "&host=http://b.example", "", b, []string{"alice-at-http://b.example", "bob-at-http://b.example"}},
		{operatorToken, "&host=http://b.example", b.opt.Pulse.ID(1), b, []string{"bob-at-http://b.example"}},
		{bobToken, "&host=http://b.example", "", b, []string{"bob-at-http://b.example"}},
	} {
		list := read(c.token, c.query, c.last)
		end := list[len(list)-1]
		hosts := fmt.Sprintf(`"host":%q,"hosts":["http://a.example","http://b.example"]`, c.of.opt.Pulse.Host())
		if end.name != "ping" || end.id != c.of.opt.Pulse.ID(2) || !strings.Contains(end.data, hosts) {
			t.Errorf("%q ends with %v, want a ping with %s", c.query, end, hosts)
		}
		has := func(e sse, name string) bool { return strings.Contains(e.data, `"`+name+`"`) }
		if !slices.EqualFunc(list[:len(list)-1], c.want, has) {
			t.Errorf("%q: %v, want %v", c.query, list, c.want)
		}
	}
	if list := read(operatorToken, "&host=http://b.example", a.opt.Pulse.ID(1)); list[0].name != "reset" || list[0].id != b.opt.Pulse.ID(2) || !strings.Contains(list[0].data, `"reason":"incarnation"`) {
		t.Errorf("with the id of another host: %v", list)
	}
	refusal{"no host", operatorToken, "GET", "/skep/v1/pulse?host=http://c.example", "", 404, "no host of the cluster has the address 'http://c.example'"}.check(t, a.handler)
	refusal{"no host by a user", bobToken, "GET", "/skep/v1/pulse?host=http://c.example&owner=user:alice", "", 401, "invalid role: users follow their own tasks"}.check(t, a.handler)
	cut()
	b.server.CloseClientConnections()
	refusal{"a host that is away", operatorToken, "GET", "/skep/v1/pulse?kept=true&host=http://b.example", "", 503, "host http://b.example does not answer; come again"}.check(t, a.handler)
}

// A feed of another host ends when the host is not alive any more: the network need not say so.
func TestPulseOfLostHost(t *testing.T) {
	t.Parallel()
	a, _, _ := clusterPair(t, 1)
	got := a.do(request{path: "/skep/v1/pulse?host=http://b.example", token: operatorToken})
	if got.status != http.StatusOK && got.status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A host that shares its store with no other has its own feed alone.
func TestPulseOfOneHost(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, withPulse)
	got := h.do(request{path: "/skep/v1/pulse?kept=true&host=host-a", token: operatorToken})
	if list := events(t, got.body); len(list) != 1 || !strings.Contains(list[0].data, `"host":"host-a","hosts":["host-a"]`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	refusal{"no host", operatorToken, "GET", "/skep/v1/pulse?host=host-b", "", 404, "no host of the cluster has the address 'host-b'"}.check(t, h.handler)
}
