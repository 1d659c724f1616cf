package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/host/internal/diagnosis"
	"skep/host/internal/store/pgtest"
)

// serverPatient is a host that keeps its tasks on a server.
type serverPatient struct {
	*patient
	server *pgtest.Server
}

// newServerPatient returns a host that has worked on a task.
func newServerPatient(t *testing.T) *serverPatient {
	t.Helper()
	p := &serverPatient{newPatient(t, t.TempDir()), pgtest.Start(t)}
	p.server.Exec(t, "CREATE SCHEMA hive", "CREATE ROLE poor LOGIN PASSWORD 'right'")
	p.vars["SKEP_KEYRING"] = strings.Repeat("5e", 32)
	p.setDurability("local")
	p.useDSN(p.server.DSN("search_path", "hive"))
	p.run("run", "hello", "--data", p.data)
	return p
}

// useDSN names the server.
func (p *serverPatient) useDSN(dsn string) { p.vars["SKEP_DSN"] = dsn }

// setDurability writes the file with a durability.
func (p *serverPatient) setDurability(durability string) {
	p.also("[store]\ndriver = \"postgres\"\ndsn = \"env::SKEP_DSN\"\nkeyring = \"env::SKEP_KEYRING\"\nplaintext = true\ndurability = \"" + durability + "\"\n")
}

// setOnServer changes a setting of the server, which reads it some time later.
func (p *serverPatient) setOnServer(setting string) {
	p.server.Exec(p.t, "ALTER SYSTEM SET "+setting, "SELECT pg_reload_conf()")
}

// requirePasswords makes the server admit roles other than its administrator with their password alone.
func (p *serverPatient) requirePasswords() {
	p.server.Exec(p.t, `DO $$BEGIN EXECUTE format('COPY (VALUES (''local all skep trust''), (''local all all scram-sha-256'')) TO %L', current_setting('hba_file')); END$$`, "SELECT pg_reload_conf()")
}

// fixStatement finds the statements that a fix tells the administrator of the server to type.
var fixStatement = regexp.MustCompile(`(?:CREATE|GRANT) [^;]*`)

// serverFault is a fault of a server or of the way to it: plant makes it, and mend does what its fix says.
type serverFault struct {
	name, path, reason, fix string
	plant                   func(*serverPatient)
	mend                    func(*serverPatient, diagnosis.Finding)
}

// TestDoctorFindsServerFaults: each planted fault of a server is found with its reason, and what the finding says
// mends it.
func TestDoctorFindsServerFaults(t *testing.T) {
	t.Parallel()
	p := newServerPatient(t)
	healthy := p.vars["SKEP_DSN"]
	p.wantFaults(t, 0)
	restoreDSN := func(p *serverPatient, _ diagnosis.Finding) { p.useDSN(healthy) }
	typeFix := func(p *serverPatient, f diagnosis.Finding) { p.server.Exec(p.t, fixStatement.FindString(f.Fix)) }
	set := func(text string) func(*serverPatient, diagnosis.Finding) {
		return func(p *serverPatient, _ diagnosis.Finding) { p.setOnServer(text) }
	}
	claimOldVersion := func(said []byte) []byte { return regexp.MustCompile(`1[4-9]00\d\d`).ReplaceAll(said, []byte("130021")) }
	for _, f := range []serverFault{
		{"version", "store.dsn", "version 130021, at least 140000", "newer PostgreSQL", func(p *serverPatient) {
			p.useDSN(p.server.Relay(t, claimOldVersion, "search_path", "hive"))
		}, restoreDSN},
		{"pooler", "store.dsn", "a pooler stands before", "name the server itself", func(p *serverPatient) {
			p.useDSN(p.server.Pooler(t, "search_path", "hive"))
		}, restoreDSN},
		{"fsync", "store.dsn", "fsync = off", "fsync = on", func(p *serverPatient) { p.setOnServer("fsync = off") }, set("fsync = on")},
		{"full_page_writes", "store.dsn", "full_page_writes = off", "full_page_writes = on", func(p *serverPatient) { p.setOnServer("full_page_writes = off") }, set("full_page_writes = on")},
		{"no standby", "store.durability", "no synchronous standby", `durability = "local"`, func(p *serverPatient) { p.setDurability("replicated") },
			func(p *serverPatient, _ diagnosis.Finding) { p.setDurability("local") }},
		{"standby gone", "store.durability", "synchronous_standby_names = ANY 1 (gone) and none", "leave those out", func(p *serverPatient) {
			p.setOnServer("synchronous_standby_names = 'ANY 1 (gone)'")
		}, set("synchronous_standby_names = ''")},
		{"no schema", "store.dsn", "search_path, empty,", "CREATE SCHEMA empty AUTHORIZATION skep", func(p *serverPatient) {
			p.useDSN(p.server.DSN("search_path", "empty"))
		}, typeFix},
		{"schema of others", "store.dsn", "search_path, theirs,", "GRANT USAGE, CREATE ON SCHEMA theirs TO poor", func(p *serverPatient) {
			p.server.Exec(t, "CREATE SCHEMA theirs")
			p.useDSN(p.server.DSN("search_path", "theirs", "user", "poor"))
		}, func(p *serverPatient, f diagnosis.Finding) {
			p.server.Exec(t, fixStatement.FindAllString(f.Fix, -1)[1])
		}},
		{"no right", "store.dsn", "may make no tables in the schema readable", "GRANT CREATE ON SCHEMA readable TO poor", func(p *serverPatient) {
			p.server.Exec(t, "CREATE SCHEMA readable", "GRANT USAGE ON SCHEMA readable TO poor")
			p.useDSN(p.server.DSN("search_path", "readable", "user", "poor"))
		}, typeFix},
		{"no role", "store.dsn", `role "nobody" does not exist`, "CREATE ROLE", func(p *serverPatient) {
			p.useDSN(p.server.DSN("user", "nobody"))
		}, restoreDSN},
		{"password", "store.dsn", "password authentication failed", "correct the password", func(p *serverPatient) {
			p.requirePasswords()
			p.useDSN(p.server.DSN("search_path", "readable", "user", "poor", "password", "wrong"))
		}, func(p *serverPatient, _ diagnosis.Finding) {
			p.useDSN(p.server.DSN("search_path", "readable", "user", "poor", "password", "right"))
		}},
		{"no database", "store.dsn", `database "other" does not exist`, "CREATE DATABASE", func(p *serverPatient) {
			p.useDSN(p.server.DSN("search_path", "hive", "dbname", "other"))
		}, restoreDSN},
		{"TLS", "store.dsn", "server refused TLS connection", "sslmode=disable", func(p *serverPatient) {
			p.useDSN(p.server.Relay(t, nil, "search_path", "hive", "sslmode", "require"))
		}, func(p *serverPatient, _ diagnosis.Finding) {
			p.useDSN(strings.Replace(p.vars["SKEP_DSN"], "sslmode=require", "sslmode=disable", 1))
		}},
		{"away", "store.dsn", "connection refused", "start the server", func(p *serverPatient) { p.server.Kill(t) },
			func(p *serverPatient, _ diagnosis.Finding) { p.server.Start(t) }},
	} {
		t.Run(f.name, func(t *testing.T) {
			f.plant(p)
			found := p.wantFaults(t, 1)
			if found.ID != diagnosis.StoreServer || found.Subject != f.path || !strings.Contains(found.Message, f.reason) || !strings.Contains(found.Fix, f.fix) {
				t.Errorf("found %+v", found)
			}
			f.mend(p, found)
			p.wantFaults(t, 0)
		})
		p.setDurability("local")
		p.useDSN(healthy)
	}
}

// TestDoctorOfServerWithoutData: where the store is on a server, doctor does not say of a missing data directory
// that tasks are missing.
func TestDoctorOfServerWithoutData(t *testing.T) {
	t.Parallel()
	p := newServerPatient(t)
	p.must(os.RemoveAll(p.data))
	found, _ := p.diagnose()
	if len(found) != 1 || found[0].ID != diagnosis.DataMissing || !strings.Contains(found[0].Message, "finds its tasks on the server") {
		t.Errorf("found %+v", found)
	}
}

// wantFaults waits until doctor finds n faults, 0 or 1, and returns the one. It waits because the server reads a
// changed setting some time later.
func (p *serverPatient) wantFaults(t *testing.T, n int) (one diagnosis.Finding) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all, _ := p.diagnose()
		found := slices.DeleteFunc(all, func(f diagnosis.Finding) bool { return f.ID == diagnosis.DataMissing }) // of a schema that is new
		switch {
		case len(found) == n && n == 0:
			return one
		case len(found) == n:
			return found[0]
		case time.Now().After(deadline):
			t.Fatalf("found %+v, want %d", found, n)
		}
	}
}
