package cli

import (
	"strings"
	"testing"
)

// TestDataServer: a command on files of a directory, or one that starts a host, refuses a DSN as --data and says where
// the server is named; none takes a password on its command line.
func TestDataServer(t *testing.T) {
	t.Parallel()
	p := newPatient(t, t.TempDir())
	p.heal()
	p.vars["SKEP_DSN"] = "postgres://u@127.0.0.1:1/d"
	for command, want := range map[string]string{
		"serve --data env::SKEP_DSN":                                "serve takes a directory as --data, and a PostgreSQL server from [store] in swarm.toml",
		"doctor --data file::dsn":                                   "doctor takes a directory",
		"gateway key a2a --data postgres://u@h/d":                   "gateway key takes a directory",
		"audit verify --data env::SKEP_DSN":                         "audit verify takes a directory",
		"restore copy.db --data postgresql://u@h/d":                 "restore takes a directory",
		"tenant list --data postgres://u:secret@h/d":                "--data has a password",
		"backup copy.db --data env::NO_DSN":                         "--data: the environment variable NO_DSN is not set",
		"replay t --data postgres://u:secret@h/d":                   "--data has a password",
		"tenant erase acme --yes --data postgres://u@h/d?sslmode=x": "--data: it is no DSN of PostgreSQL",
	} {
		code, s := p.call(strings.Fields(command)...)
		if out := s.stderr.String(); code != exitUsage || !strings.Contains(out, want) || strings.Contains(out, "secret") {
			t.Errorf("$ skep %s\n%d %s, want %s", command, code, out, want)
		}
	}
}

// TestDataServerPlaintext: a server on another machine is not called without TLS unless [store] allows it, whether
// --data or a move names it.
func TestDataServerPlaintext(t *testing.T) {
	t.Parallel()
	p := newPatient(t, t.TempDir())
	p.heal()
	p.run("run", "hello", "--data", p.data)
	p.vars["SKEP_KEYRING"] = strings.Repeat("5e", 32)
	p.vars["SKEP_DSN"] = "postgres://u@no-such-host.invalid/d"
	const refused = ": the server is on another machine, and not all connections to it are over TLS"
	commands := map[string]string{
		"tenant list --data env::SKEP_DSN":                                       "--data",
		"replay t --data env::SKEP_DSN":                                          "--data",
		"migrate --from " + p.data + " --to env::SKEP_DSN":                       "--to",
		"migrate --from env::SKEP_DSN --to " + p.path("back"):                    "--from",
		"tenant list --data postgres://u@no-such-host.invalid/d?sslmode=require": "--data",
	}
	for command, flag := range commands {
		code, s := p.call(strings.Fields(command)...)
		if out := s.stderr.String(); code != exitUsage || !strings.Contains(out, flag+refused) {
			t.Errorf("$ skep %s\n%d %s", command, code, out)
		}
	}
	p.also("[store]\ndriver = \"postgres\"\ndsn = \"env::SKEP_DSN\"\nkeyring = \"env::SKEP_KEYRING\"\nplaintext = true\n")
	for command := range commands {
		code, s := p.call(strings.Fields(command)...)
		if out := s.stderr.String(); code == exitUsage || !strings.Contains(out, "no-such-host") {
			t.Errorf("with plaintext = true\n$ skep %s\n%d %s", command, code, out)
		}
	}
}

// TestDataServerVariable: a DSN in SKEP_DATA is refused by commands that use the data directory, and is nothing to the
// others.
func TestDataServerVariable(t *testing.T) {
	t.Parallel()
	p := newPatient(t, t.TempDir())
	p.heal()
	p.vars["SKEP_DATA"] = "env::SKEP_DSN"
	for _, command := range []string{"version", "validate"} {
		p.run(command)
	}
	if code, s := p.call("validate", "--data", "env::SKEP_DSN"); code != exitUsage || !strings.Contains(s.stderr.String(), "takes a directory as --data") {
		t.Errorf("validate: %d %s", code, s.stderr.String())
	}
	for _, command := range []string{"serve", "run hello", "restore copy.db", "gateway key", "audit verify", "doctor", "support-bundle b.tar.gz"} {
		if code, s := p.call(strings.Fields(command)...); code != exitUsage || !strings.Contains(s.stderr.String(), "takes a directory as SKEP_DATA") {
			t.Errorf("%s: %d %s", command, code, s.stderr.String())
		}
	}
}
