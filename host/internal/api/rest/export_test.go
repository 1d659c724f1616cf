package rest

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"skep/host/internal/api/auth"
)

// Routes lists every route as "METHOD path".
func Routes() []string {
	var all []string
	for _, rt := range slices.Concat(mailRoutes(), debugRoutes(), skepRoutes()) {
		all = append(all, rt.method+" "+rt.path)
	}
	return all
}

// Answered lists what a handler has answered: route and status.
func (h *Handler) Answered() map[string][]int {
	got := map[string][]int{}
	all := make(chan prometheus.Metric, 10_000)
	h.counters.requests.Collect(all)
	close(all)
	for m := range all {
		var series dto.Metric
		if err := m.Write(&series); err != nil {
			panic(err)
		}
		labels := map[string]string{}
		for _, l := range series.Label {
			labels[l.GetName()] = l.GetValue()
		}
		code, err := strconv.Atoi(labels["code"])
		if err != nil {
			panic(err)
		}
		route := strings.TrimSpace(labels["method"] + " " + labels["route"])
		got[route] = append(got[route], code)
	}
	return got
}

// Streams counts the streams that are open.
func (h *Handler) Streams() int64 { return h.openStreams.count() }

// Address is who shares a bucket with a caller behind some proxies.
func Address(r *http.Request, trusted ...netip.Prefix) string {
	return trustedProxies(trusted).clientAddress(r)
}

// OpenStreams takes places for streams that no test has to hold open.
func (h *Handler) OpenStreams(who auth.Principal, n int) error {
	for range n {
		if _, err := h.openStreams.acquireStream(who); err != nil {
			return err
		}
	}
	return nil
}

// DebugRoutes lists those that [server] debug opens.
func DebugRoutes() (all []string) {
	for _, rt := range debugRoutes() {
		all = append(all, rt.method+" "+rt.path)
	}
	return all
}

// StreamShares opens streams of two tenants until each is refused, and returns how many
// they have.
func StreamShares(most int, several bool) (first, second int) {
	c := newStreamLimiter(most, 0, several)
	open := func(tenant string) (n int) {
		for {
			who := auth.Principal{Role: auth.User, Tenant: tenant, ID: strconv.Itoa(n)} // each another one
			if _, err := c.acquireStream(who); err != nil {
				return n
			}
			n++
		}
	}
	return open("first"), open("second")
}

// Proof is what another host shows with a request.
func (o *OtherHosts) Proof(r *http.Request, now time.Time) string { return o.proof(r, now) }

// DialBy connects to hosts in another way.
func (o *OtherHosts) DialBy(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	o.client.Transport.(*http.Transport).DialContext = dial
}
