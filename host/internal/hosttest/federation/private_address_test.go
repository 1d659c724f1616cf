package federation_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// A host that listens on loopback asks swarms there what they are, unless it
// serves others through a proxy; no setting makes it call a link-local address.
func TestPeersAtPrivateAddresses(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	peer := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			asked <- struct{}{}
		}
	}))
	t.Cleanup(peer.Close)
	for name, c := range map[string]struct {
		server string
		asks   bool
	}{
		"alone":           {"", true},
		"a public name":   {`public_url = "https://hive.example"`, false},
		"trusted proxies": {`trusted_proxies = ["10.0.0.0/8"]`, false},
	} {
		s := hosttest.NewSite(t, strings.Replace(hosttest.GrantedSwarm, "[tenants.acme]", "[server]\npeer_health = \"0s\"\n"+c.server+"\n[tenants.acme]", 1))
		_, err := s.As(hosttest.AdaKey).RegisterSwarm(t.Context(), client.Registration{Name: "depot", BaseURL: peer.URL})
		var refused *client.Error
		if c.asks && (err != nil || len(asked) != 1) || !c.asks && (!errors.As(err, &refused) || refused.Status != http.StatusBadRequest || len(asked) != 0) {
			t.Errorf("%s: %v, asked %d times", name, err, len(asked))
		}
		if c.asks {
			<-asked
		}
		_, err = s.As(hosttest.AdaKey).RegisterSwarm(t.Context(), client.Registration{Name: "meta", BaseURL: "http://169.254.169.254"})
		if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest {
			t.Errorf("%s: link-local: %v", name, err)
		}
	}
}
