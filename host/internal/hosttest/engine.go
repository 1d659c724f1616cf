package hosttest

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/definition/config"
	"skep/host/internal/store/pgtest"
)

// StoreEnv is the variable that chooses the engine of the hosts of tests: "postgres" keeps
// each in a schema of a real server.
const StoreEnv = "SKEP_TEST_STORE"

// storeKEK wraps the keys of hosts on a server, as [store] keyring has it.
var storeKEK = strings.Repeat("5e", 32)

// OnServer reports whether hosts of tests keep what they have on a server.
func OnServer() bool { return os.Getenv(StoreEnv) == config.DriverPostgres }

// SkipOnServer skips a test of what only the file engine has.
func SkipOnServer(t testing.TB, why string) {
	t.Helper()
	if OnServer() {
		t.Skip("not with "+StoreEnv+"=postgres:", why)
	}
}

// placeSet has the stores of data directories that are on a server.
type placeSet struct {
	mu sync.Mutex
	of map[string]config.Store
}

// places has the stores of this test binary.
var places = placeSet{of: map[string]config.Store{}}

// StoreOf returns the settings of the store of a data directory: its own, or the ones of the
// schema that belongs to it.
func StoreOf(t testing.TB, data string, own config.Store) config.Store {
	t.Helper()
	if !OnServer() || own.Driver == config.DriverPostgres {
		return own
	}
	data, err := filepath.Abs(data)
	if err != nil {
		t.Fatal(err)
	}
	places.mu.Lock()
	defer places.mu.Unlock()
	s, has := places.of[data]
	if !has {
		s = config.Store{DSN: config.Secret(pgtest.Place(t))}
		places.of[data] = s
	}
	own.Driver, own.DSN, own.Durability = config.DriverPostgres, s.DSN, config.DurabilityLocal
	if own.Keyring == "" {
		own.Keyring = config.Secret(storeKEK)
	}
	return own
}

// onServer puts a data directory's server into the text of a file that names none.
func onServer(t testing.TB, data, text string) string {
	t.Helper()
	if !OnServer() || strings.Contains(text, "\ndriver = ") {
		return text
	}
	lines := "driver = \"postgres\"\ndsn = \"" + StoreOf(t, data, config.Store{}).DSN.Reveal() + "\"\n"
	if !strings.Contains(text, "\nkeyring = ") {
		lines += "keyring = \"file::store.key\"\n"
	}
	if before, after, has := strings.Cut(text, "[store]\n"); has {
		return before + "[store]\n" + lines + after
	}
	return text + "[store]\n" + lines
}

// writeStoreKey writes the file of the key that onServer names.
func writeStoreKey(t testing.TB, dir string) {
	t.Helper()
	if !OnServer() {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "store.key"), []byte(storeKEK), 0o600); err != nil {
		t.Fatal(err)
	}
}
