package rest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"skep/host/internal/api/rest"
)

// fakeCluster is hosts 7, which answers and is the last one that takes tasks, and 8, which is drained.
type fakeCluster struct{}

func (fakeCluster) Hosts() (list []rest.ClusterHost, level int) {
	return []rest.ClusterHost{
		{ID: 7, Address: "https://a.example", Version: "1.2", Features: 2, Slots: 1024, Silent: 300 * time.Millisecond, Self: true},
		{ID: 8, Address: "https://b.example", Version: "1.1", Features: 1, Draining: true},
	}, 1
}

func (fakeCluster) Drain(_ context.Context, id int64) error {
	switch id {
	case 7:
		return rest.ErrLastClusterHost
	case 8:
		return nil
	}
	return rest.ErrNoClusterHost
}

func (fakeCluster) Finalize(context.Context) (level int, err error) { return 1, nil }

func (fakeCluster) Counts() rest.ClusterCounts { return rest.ClusterCounts{} }

// TestCluster: an operator sees hosts and their states, and is told why one cannot be drained.
func TestCluster(t *testing.T) {
	t.Parallel()
	h := newTestHost(t, func(h *testHost) { h.opt.Cluster = fakeCluster{} })
	for _, one := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "", 200, `"id":7,"address":"https://a.example","state":"active","slots":1024,"version":"1.2","features":2,"silent_ms":300,"self":true`},
		{"GET", "", 200, `"id":8,"address":"https://b.example","state":"drained","slots":0`},
		{"POST", "/hosts/8/drain", 200, `"state":"draining"`},
		{"POST", "/hosts/7/drain", 409, "host 7 is the last one that takes tasks: start another one first"},
		{"POST", "/hosts/9/drain", 404, "no host of the cluster has the id '9'"},
		{"POST", "/hosts/x/drain", 404, "no host of the cluster has the id 'x'"},
		{"POST", "/finalize", 200, `"feature_level":1`},
	} {
		a := h.do(request{method: one.method, path: "/skep/v1/cluster" + one.path, token: operatorToken})
		if a.status != one.status || !strings.Contains(a.body, one.want) {
			t.Errorf("%s %s: %d %s, want %d with %s", one.method, one.path, a.status, a.body, one.status, one.want)
		}
	}
}
