package mailtest_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// shared is the host of all tests that need none of their own. Each of them is
// another user of it, and so has an instance for itself.
var shared struct {
	sync.Mutex
	dir, url string
	stop     func() error
	users    int
}

// maxUsers is how many tests can share the host.
const maxUsers = 99

// sharedWorld returns the shared host as seen by a user that no other test has.
func sharedWorld(t *testing.T) *world {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.stop == nil {
		var keys strings.Builder
		for i := range maxUsers {
			fmt.Fprintf(&keys, "[[auth.keys]]\nid = %q\nrole = \"user\"\nkey = %q\n", userID(i), userToken(i))
		}
		shared.url, shared.stop = launch(t, write(t, shared.dir, hive+keys.String()))
	}
	n := shared.users
	shared.users++
	return &world{t: t, me: userID(n), token: userToken(n), url: shared.url}
}

func userID(n int) string    { return fmt.Sprintf("user%02d", n) }
func userToken(n int) string { return fmt.Sprintf("token-of-user-%02d-0001", n) }

// TestMain stops the shared host after all tests.
func TestMain(m *testing.M) {
	flag.Parse()
	code := 1
	// The tests wait for hosts, and for their disk, more than they compute.
	err := flag.Set("test.parallel", "8")
	if err == nil {
		shared.dir, err = os.MkdirTemp("", "mailtest")
	}
	if err == nil {
		code = m.Run()
		if shared.stop != nil {
			err = shared.stop()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the shared host:", err)
		code = 1
	}
	_ = os.RemoveAll(shared.dir)
	os.Exit(code)
}
