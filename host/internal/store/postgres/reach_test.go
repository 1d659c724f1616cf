package postgres

import (
	"errors"
	"strings"
	"testing"
)

func TestReach(t *testing.T) {
	for _, name := range []string{"PGHOST", "PGSSLMODE", "PGSSLROOTCERT", "PGSERVICE", "PGPASSFILE"} {
		t.Setenv(name, "") // the machine's own are of no account
	}
	for dsn, want := range map[string]Reach{
		"postgres://u@db.example/d?sslmode=verify-full":                {Verified: true},
		"postgres://u:p@db.example/d?sslmode=verify-full":              {Verified: true, HasPassword: true},
		"host=db.example user=u password=p sslmode=verify-full":        {Verified: true, HasPassword: true},
		"postgres://u@db.example/d?sslmode=verify-ca":                  {},
		"postgres://u@db.example/d?sslmode=require":                    {},
		"postgres://u@db.example/d":                                    {},
		"postgres://u@db.example/d?sslmode=disable":                    {},
		"postgres://u@127.0.0.1/d?sslmode=disable":                     {Local: true},
		"postgres://u@[::1]/d?sslmode=verify-full":                     {Local: true, Verified: true},
		"postgres://u@localhost/d":                                     {Local: true},
		"postgres://u@/d?host=/run/postgresql":                         {Local: true},
		"postgres://u@127.0.0.1,db.example/d?sslmode=disable":          {},
		"postgres://u@one.example,two.example/d?sslmode=verify-full":   {Verified: true},
		"host=db.example,/run/postgresql user=u sslmode=verify-full":   {},
		"postgres://u@db.example:5433/d?sslmode=verify-full&options=x": {Verified: true},
	} {
		if got, err := ReachOf(dsn); err != nil || got != want {
			t.Errorf("ReachOf(%q) = %+v, %v, want %+v", dsn, got, err, want)
		}
	}
	for _, dsn := range []string{"", " ", "postgres://u:se/cret@h/d", "postgres://u:p@h/d?sslmode=often", "secret"} {
		if _, err := ReachOf(dsn); !errors.Is(err, ErrDSN) || strings.Contains(err.Error(), "cret@") {
			t.Errorf("ReachOf(%q) = %v", dsn, err)
		}
	}
}
