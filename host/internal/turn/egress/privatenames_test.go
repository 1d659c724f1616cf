package egress_test

import (
	"testing"

	"skep/abi"
)

// A trusted name may resolve to a private address, but not to a link-local one. Each
// address is checked, and a redirect target is checked as a name of its own.
func TestPrivateNames(t *testing.T) {
	t.Parallel()
	const lan = "10.1.2.3"
	w := newFakeNet(t)
	w.resolve("lan.test", lan)
	w.resolve("mixed.test", "169.254.169.254 "+lan)
	w.resolve("meta.test", "169.254.169.254")
	w.resolve("sub.lan.test", lan)
	w.serve(lan+":80", echo)
	p := granted(t, "http://lan.test", "http://mixed.test", "http://meta.test", "http://*.lan.test")
	_, err := w.client().Fetch(t.Context(), p, "", get("http://lan.test/"))
	refused(t, err, abi.CodeDenied, "address", "resolves to an address that is not public")
	p.AllowPrivate = true
	_, err = w.client().Fetch(t.Context(), p, "", get("http://lan.test/"))
	refused(t, err, abi.CodeDenied, "address", "resolves to an address that is not public")

	p.PrivateNames = true
	got, err := w.client().Fetch(t.Context(), p, "", get("http://lan.test/"))
	answered(t, got, err, 200, "GET lan.test / ")
	got, err = w.client().Fetch(t.Context(), p, "", get("http://mixed.test/"))
	answered(t, got, err, 200, "GET mixed.test / ")
	_, err = w.client().Fetch(t.Context(), p, "", get("http://meta.test/"))
	refused(t, err, abi.CodeDenied, "address", "no grant opens")
	_, err = w.client().Fetch(t.Context(), p, "", get("http://sub.lan.test/"))
	refused(t, err, abi.CodeDenied, "address", "not public")
	for _, to := range w.dialled {
		if to.Addr().String() != lan {
			t.Errorf("dialled %s", to)
		}
	}
}
