package cli

import (
	"testing"

	"skep/host/client"
)

// TestFindHost: a host is found by its id and by its address, as a user copies it from a browser, too.
func TestFindHost(t *testing.T) {
	t.Parallel()
	found := client.Cluster{Hosts: []client.ClusterHost{{ID: 3, Address: "http://a.example"}, {ID: 33, Address: "http://b.example/"}}}
	for name, want := range map[string]int64{
		"3": 3, "33": 33, "http://a.example": 3, "http://a.example/": 3, "http://b.example": 33, "http://b.example/": 33,
		"": 0, "/": 0, "a.example": 0, "http://a.example:80": 0,
	} {
		if h, err := findHost(found, name); h.ID != want || (err == nil) != (want > 0) {
			t.Errorf("%q is host %d, %v, want %d", name, h.ID, err, want)
		}
	}
}

// TestHoldingBack: an upgrade that cannot be finalized names the hosts that have to be replaced.
func TestHoldingBack(t *testing.T) {
	t.Parallel()
	older, newer := client.ClusterHost{ID: 1, Features: 2}, client.ClusterHost{ID: 2, Features: 3}
	for _, c := range []struct {
		hosts []client.ClusterHost
		want  int
	}{
		{nil, 0}, {[]client.ClusterHost{older, older}, 0}, {[]client.ClusterHost{older, newer, older}, 2},
	} {
		if got := holdingBack(client.Cluster{Hosts: c.hosts}, 2); len(got) != c.want {
			t.Errorf("%v: %v hold back, want %d", c.hosts, got, c.want)
		}
	}
	if got := holdingBack(client.Cluster{Hosts: []client.ClusterHost{newer, newer}}, 3); len(got) != 0 {
		t.Errorf("%v hold back what is raised", got)
	}
}
