package config

import (
	"errors"
	"time"

	"skep/host/internal/store/keyring"
	"skep/host/internal/store/postgres"
)

// Store is the [store] table.
type Store struct {
	Driver string // DriverSQLite or DriverPostgres
	// DSN is where the server is, of DriverPostgres alone, as [postgres.ReachOf] reads it.
	DSN Secret
	// Durability is what an acknowledgement means, of DriverPostgres alone.
	Durability string
	// Plaintext allows a server on another machine without TLS, or one that is not verified.
	Plaintext bool
	// Keyring is the key that wraps the keys of tenants, as
	// [keyring.ParseKEK] reads it; empty leaves them plain in their file.
	Keyring Secret
	// JournalRetention is how long the records of turns are kept after they and
	// their task have ended, HistoryRetention how long whole tasks are; 0 keeps.
	JournalRetention, HistoryRetention time.Duration
	// MessageLog bounds the older files of the log of foreign messages.
	MessageLog Size
}

// Values of [Store.Driver].
const (
	DriverSQLite   = "sqlite"
	DriverPostgres = "postgres"
)

// Values of [Store.Durability].
const (
	// DurabilityReplicated: a synchronous standby has what was acknowledged.
	DurabilityReplicated = "replicated"
	// DurabilityLocal: only the server's own disk has it.
	DurabilityLocal = "local"
)

func (s *Store) Settings() []Setting {
	return []Setting{
		choice(&s.Driver, "driver", DriverSQLite, []string{DriverSQLite, DriverPostgres}, "The engine: `sqlite` is a file in the data directory, `postgres` a server, see [Keep it on PostgreSQL](postgres.md)."),
		field(&s.DSN, "dsn", "secret", (*table).dsn, "Where the PostgreSQL server is, by `env::` or `file::`; needed by the driver `postgres`. A `sslmode` other than `verify-full` is refused unless the server is on this machine or `plaintext` is set."),
		choice(&s.Durability, "durability", DurabilityReplicated, []string{DurabilityReplicated, DurabilityLocal}, "What an acknowledgement means on PostgreSQL: `replicated` refuses a server without a synchronous standby, `local` trusts its disk.").withDefaultText("local for a server on this machine, else replicated"),
		boolean(&s.Plaintext, "plaintext", false, "A PostgreSQL server on another machine may be called without TLS, or without verifying it."),
		field(&s.Keyring, "keyring", "secret", (*table).keyring, "The key that wraps tenants' keys, by `env::` or `file::`. Without it they lie plain in their file; the driver `postgres` needs it."),
		span(&s.JournalRetention, "journal_retention", 7*day, time.Minute, 100*365*day, "How long records of turns are kept after they and their task have ended.").unlimited(),
		span(&s.HistoryRetention, "history_retention", 0, time.Minute, 100*365*day, "How long whole tasks are kept after their end.").unlimited(),
		size(&s.MessageLog, "message_log", GiB, MiB, 1024*GiB, "Older files of the log of foreign messages; the oldest is removed.").unlimited(),
	}
}

func (d *decoder) store(t *table) Store {
	var s Store
	t.read(s.Settings())
	if s.Driver == DriverPostgres {
		d.checkServer(t, &s)
	} else {
		s.Durability = ""
		d.refuseServerKeys(t)
	}
	t.refuseUnknown()
	return s
}

// refuseServerKeys refuses what only a server has.
func (d *decoder) refuseServerKeys(t *table) {
	if t.has("dsn") {
		d.atKey(t.child("dsn"), `dsn is for the driver postgres: add driver = "postgres"; the sqlite store lies in the data directory, which --data chooses`)
	}
	for _, key := range []string{"durability", "plaintext"} {
		if t.has(key) {
			d.atKey(t.child(key), key+` is for the driver postgres; remove the line, or add driver = "postgres"`)
		}
	}
}

// checkServer checks the settings of a server.
func (d *decoder) checkServer(t *table, s *Store) {
	if !t.has("dsn") {
		t.missing("dsn", "; the driver postgres needs it")
	}
	if !t.has("keyring") {
		t.missing("keyring", "; the driver postgres needs it, because the server and its backups have the keys of tenants")
	}
	v, ok := t.value("dsn")
	if !ok {
		return
	}
	reach, err := postgres.ReachOf(v.text)
	if err != nil {
		d.atValue(v.location, v.path+": "+err.Error())
		return
	}
	if reach.Local && !t.has("durability") {
		s.Durability = DurabilityLocal
	}
	if err := s.CheckReach(reach); err != nil {
		d.atValue(t.child("dsn"), err.Error())
	}
}

// errPlaintext refuses what others on the way to a server could read or answer.
var errPlaintext = errors.New("the server is on another machine, and not all connections to it are over TLS with a certificate that is verified; add sslmode=verify-full to it, or set [store] plaintext = true if the network between them is trusted")

// CheckReach refuses a way to a server that [Store.Plaintext] would have to allow.
func (s *Store) CheckReach(r postgres.Reach) error {
	if !r.Local && !r.Verified && !s.Plaintext {
		return errPlaintext
	}
	return nil
}

// dsn reads a DSN. One with a password in the file itself is a warning.
func (t *table) dsn(key string) Secret {
	v, ok := t.value(key)
	if !ok {
		return ""
	}
	if reach, err := postgres.ReachOf(v.text); err != nil || reach.HasPassword {
		t.d.warnLiteral(v)
	}
	return Secret(v.text)
}

// keyring reads the wrapping key. One that stands in the file itself would lie
// in every copy of it.
func (t *table) keyring(key string) Secret {
	d := t.d
	v, ok := t.value(key)
	if !ok {
		return ""
	}
	if !v.ref {
		d.atValue(v.location, v.path+` must be "env::NAME" or "file::PATH"; a key does not belong into this file`)
		return ""
	}
	if _, err := keyring.ParseKEK(v.text); err != nil {
		d.atValue(v.location, v.shown+" is no key: "+err.Error())
		return ""
	}
	return Secret(v.text)
}

// LoadStore reads the [store] table, and nothing else, from the file at path,
// as [Listen] does.
func LoadStore(path string, opt Options) (Store, error) {
	d, file, err := open(path, opt)
	if err != nil {
		return Store{}, err
	}
	s := d.store(file.table("store"))
	if len(d.faults) > 0 {
		return Store{}, d.result()
	}
	return s, nil
}
