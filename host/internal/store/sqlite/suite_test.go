package sqlite_test

import (
	"testing"

	"go.uber.org/goleak"

	"skep/host/internal/store/keyring"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) { storetest.Run(t, engine(nil)) }

func TestSuiteSealed(t *testing.T) {
	storetest.Run(t, engine(&keyring.Options{KEK: []byte("0123456789abcdef0123456789abcdef")}))
}

// engine keeps each store in a directory of its own.
func engine(keys *keyring.Options) storetest.Engine {
	return storetest.Engine{
		NewPlace: func(t *testing.T) storetest.Place { return storetest.Place(t.TempDir()) },
		Open: func(t *testing.T, at storetest.Place) storetest.Store {
			s, err := sqlite.Open(t.Context(), string(at), sqlite.Options{Keyring: keys, Storage: storetest.Storage})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
}
