package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"

	"skep/host/internal/store/keyring"
	"skep/host/internal/store/pgtest"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/store/storetest"
)

func TestServerSuite(t *testing.T) { storetest.Run(t, serverEngine(nil)) }

func TestServerSuiteSealed(t *testing.T) {
	storetest.Run(t, serverEngine(&keyring.Options{KEK: []byte("0123456789abcdef0123456789abcdef")}))
}

// serverEngine keeps each store in a schema of its own, and its keys in a directory. A place
// is both.
func serverEngine(keys *keyring.Options) storetest.Engine {
	return storetest.Engine{
		NewPlace: func(t *testing.T) storetest.Place {
			return storetest.Place(pgtest.Schema(t) + "\n" + t.TempDir())
		},
		Open: func(t *testing.T, at storetest.Place) storetest.Store {
			dsn, dir, _ := strings.Cut(string(at), "\n")
			server := sqlite.Server{DSN: dsn}
			if keys != nil {
				var err error
				if server.Ring, err = keyring.Open(filepath.Join(dir, "keyring"), *keys); err != nil {
					t.Fatal(err)
				}
			}
			s, err := sqlite.OpenServer(t.Context(), server, sqlite.Options{Storage: storetest.Storage})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
}
