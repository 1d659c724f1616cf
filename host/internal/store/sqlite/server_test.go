package sqlite_test

import (
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

// serverEngine keeps each store in a schema of its own. A place is a DSN.
func serverEngine(keys *keyring.Options) storetest.Engine {
	return storetest.Engine{
		NewPlace: func(t *testing.T) storetest.Place {
			return storetest.Place(pgtest.Schema(t))
		},
		Open: func(t *testing.T, at storetest.Place) storetest.Store {
			s, err := sqlite.OpenServer(t.Context(), sqlite.Server{DSN: string(at)}, sqlite.Options{Storage: storetest.Storage, Keyring: keys})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
}
