package cluster_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
	"skep/host/internal/store/pgtest"
)

// openTasks lets callers post tasks that stay open at hosts, and returns those that were accepted.
func openTasks(t *testing.T, round string, hosts []*hosttest.Process, callers int) (accepted []string) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	for n := range callers {
		c, err := client.New(client.Options{URL: "http://" + hosts[n%len(hosts)].Addr, Token: hosttest.ScriptKey, NoWait: true})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer c.Close()
			r, err := c.PostAsync(t.Context(), client.Post{Task: fmt.Sprint(round, n), Body: `[["sleep",{"ms":600000}]]`})
			var refused *client.Error
			switch {
			case err == nil:
				mu.Lock()
				accepted = append(accepted, r.Task)
				mu.Unlock()
			case !errors.As(err, &refused) || refused.Status != http.StatusTooManyRequests ||
				!strings.Contains(refused.Detail, `tenant "default" has 5 tasks running, its quota; raise [tenants.default] tasks or try later`):
				t.Errorf("caller %d: %v", n, err)
			}
		})
	}
	all.Wait()
	return accepted
}

// TestOpenTasks: whatever 64 callers of three hosts post at once, their tenant has as many tasks open as its
// quota, and no more. The tasks of a host that is killed stay open, and make room when they end elsewhere. The hosts
// that are left share its part of the rate of requests, and see how many messages wait at each other.
func TestOpenTasks(t *testing.T) {
	t.Parallel()
	hosttest.SkipOnServer(t, "its hosts share a server of their own")
	const quota, callers, rate = 5, 64, 600
	hosts := hostsRunning(t, 3, pgtest.Schema(t), hosttest.ScriptSwarm+fmt.Sprintf("[tenants.default]\ntasks = %d\nqueue = 1000\n[server.rate_limit]\nrequests = %d\nper = \"24h\"\n", quota, rate))
	for _, h := range hosts {
		h.Client()
	}
	first := openTasks(t, "first", hosts, callers)
	if len(first) != quota {
		t.Fatalf("%d tasks are open, want %d", len(first), quota)
	}
	hosts[2].Kill()
	hosts = hosts[:2]
	if more := openTasks(t, "lost", hosts, 4); len(more) > 0 {
		t.Errorf("with the tasks of a host that was killed %d more are open", len(more))
	}
	c := hosts[0].Client()
	for _, task := range first {
		if err := c.Cancel(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	if second := openTasks(t, "second", hosts, callers); len(second) != quota {
		t.Errorf("%d tasks are open after the first have ended, want %d", len(second), quota)
	}
	root := hosts[0].ClientAs(operatorKey)
	hosttest.Eventually(t, "a host counts the messages that wait at all of them", func() bool {
		report, err := root.Usage(t.Context(), client.UsageQuery{Tenant: "default"})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(report.Quota, func(q client.QuotaUse) bool {
			return q.Name == "queue" && q.Used == quota && q.SpeaksFor == "store"
		})
	})
	// In the first minutes a caller gets none back.
	if n := admitted(t, hosts[0], rate); n > rate/2 || n < rate/2-10 {
		t.Errorf("one of two hosts takes %d requests of an address, want %d", n, rate/2)
	}
}

// admitted counts the requests without credentials that a host takes from an address of this machine which has asked
// nothing yet, before it refuses one for their number.
func admitted(t *testing.T, h *hosttest.Process, most int) (n int) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	defer transport.CloseIdleConnections()
	for ; n <= most; n++ {
		rsp, err := (&http.Client{Transport: transport}).Get("http://" + h.Addr + "/whoami")
		if err != nil {
			t.Fatal(err)
		}
		_ = rsp.Body.Close()
		switch rsp.StatusCode {
		case http.StatusUnauthorized:
		case http.StatusTooManyRequests:
			return n
		default:
			t.Fatalf("GET /whoami without credentials: %s", rsp.Status)
		}
	}
	return n
}
