package sqlite_test

import (
	"testing"

	"go.uber.org/goleak"

	"skep/host/internal/keyring"
	"skep/host/internal/store/sqlite"
	"skep/host/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) { suite(t, nil) }

func TestSuiteSealed(t *testing.T) {
	suite(t, &keyring.Options{KEK: []byte("0123456789abcdef0123456789abcdef")})
}

func suite(t *testing.T, keys *keyring.Options) {
	storetest.Run(t, func(t *testing.T, dir string) storetest.Engine {
		s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Keyring: keys})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func TestTokens(t *testing.T) {
	storetest.RunTokens(t, func(t *testing.T, dir string) storetest.TokenEngine {
		s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Keyring: &keyring.Options{}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
