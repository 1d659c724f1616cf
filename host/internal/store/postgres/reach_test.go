package postgres

import (
	"errors"
	"os"
	"path/filepath"
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

// TestPasswordFile: a password is found where the server's own programs look for it, so none has to be in a DSN.
func TestPasswordFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pass")
	if err := os.WriteFile(file, []byte("db.example:5432:*:u:from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGPASSWORD", "")
	t.Setenv("PGPASSFILE", file)
	if c := connector(t, "postgres://u@db.example/d"); c.config.Password != "from-a-file" {
		t.Errorf("PGPASSFILE: %q", c.config.Password)
	}
	t.Setenv("PGPASSWORD", "from-a-variable")
	if c := connector(t, "postgres://u@db.example/d"); c.config.Password != "from-a-variable" {
		t.Errorf("PGPASSWORD: %q", c.config.Password)
	}
}
