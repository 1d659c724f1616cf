package router_test

import (
	"net/url"
	"strings"
	"testing"

	"skep/host/internal/peer/router"
)

// A token goes in the clear to no public address, whatever the URL is and whatever
// private addresses the peer may have; what DNS says at the moment decides.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url   string
		addrs []string
		goes  bool
	}{
		"public":               {"http://93.184.216.34", nil, false},
		"public in IPv6":       {"http://[64:ff9b::5db8:d822]", nil, false},
		"a public name":        {"http://depot.test", []string{"93.184.216.34"}, false},
		"loopback":             {"http://127.0.0.1", nil, true},
		"localhost":            {"http://localhost", nil, true},
		"private":              {"http://10.0.0.9", nil, true},
		"a private name":       {"http://depot.lan", []string{"10.0.0.9"}, true},
		"a name that moves":    {"http://depot.lan", []string{"10.0.0.9", "93.184.216.34"}, true},
		"one that moves first": {"http://depot.lan", []string{"93.184.216.34", "10.0.0.9"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, o := newFakePeer(t, ok), newFakeOutbox()
			d.Config.SetKeepAlivesEnabled(false)
			dial := &dial{to: d.Listener.Addr().String()}
			peer := d.peer()
			peer.BaseURL, peer.AllowPrivateNames = c.url, true
			r := run(t, o, peers{"depot": peer}, func(opt *router.Options) {
				opt.Egress.Dial, opt.Egress.Resolver = dial.open, &names{addrs: c.addrs}
			})
			want := 0
			if c.goes {
				want = 1
			}
			o.put(box("t", "depot"), newDelivery(1, false))
			r.Wake(box("t", "depot"))
			o.wait(t, 1)
			if len(d.requests()) != want || !c.goes && !strings.Contains(o.failed[id(1)], "a public address, and anybody on the way there could read") {
				t.Errorf("requests %q, failed %q", d.requests(), o.failed)
			}
			if len(c.addrs) < 2 {
				return
			}
			o.put(box("t", "depot"), newDelivery(2, false))
			r.Wake(box("t", "depot"))
			o.wait(t, 1)
			if len(d.requests()) != 1 {
				t.Errorf("when it has moved: requests %q, failed %q", d.requests(), o.failed)
			}
		})
	}
}

// A name leads to a private address only where the operator has said so of that
// peer: a private address of its own is not enough.
func TestPrivateName(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		d, o := newFakePeer(t, ok), newFakeOutbox()
		u, err := url.Parse(d.URL)
		if err != nil {
			t.Fatal(err)
		}
		peer := d.peer()
		peer.BaseURL, peer.AllowPrivateNames = "http://depot.lan:"+u.Port(), named
		r := run(t, o, peers{"depot": peer}, func(opt *router.Options) { opt.Egress.Resolver = &names{addrs: []string{"127.0.0.1"}} })
		o.put(box("t", "depot"), newDelivery(1, false))
		r.Wake(box("t", "depot"))
		o.wait(t, 1)
		if (len(d.requests()) == 1) != named || (o.failed[id(1)] == "") != named {
			t.Errorf("named %v: requests %q, failed %q", named, d.requests(), o.failed)
		}
	}
}
