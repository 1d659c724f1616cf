package sqlite_test

import (
	"testing"

	"go.uber.org/goleak"

	"skep/host/internal/store/sqlite"
	"skep/host/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T, dir string) storetest.Engine {
		s, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
