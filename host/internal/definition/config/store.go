package config

import (
	"time"

	"skep/host/internal/store/keyring"
)

// Store is the [store] table.
type Store struct {
	Driver string // DriverSQLite or DriverPostgres
	DSN    Secret
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

func (s *Store) Settings() []Setting {
	return []Setting{
		choice(&s.Driver, "driver", DriverSQLite, []string{DriverSQLite, DriverPostgres}, "The engine."),
		text(&s.DSN, "dsn", "Where the engine is; of other drivers than sqlite."),
		field(&s.Keyring, "keyring", "secret", (*table).keyring, "The key that wraps tenants' keys, by `env::` or `file::`. Without it they lie plain in their file."),
		span(&s.JournalRetention, "journal_retention", 7*day, time.Minute, 100*365*day, "How long records of turns are kept after they and their task have ended.").unlimited(),
		span(&s.HistoryRetention, "history_retention", 0, time.Minute, 100*365*day, "How long whole tasks are kept after their end.").unlimited(),
		size(&s.MessageLog, "message_log", GiB, MiB, 1024*GiB, "Older files of the log of foreign messages; the oldest is removed.").unlimited(),
	}
}

func (d *decoder) store(t *table) Store {
	var s Store
	t.read(s.Settings())
	switch {
	case s.Driver == DriverPostgres:
		d.needs("postgres", t.child("driver"))
		if _, missing := d.unimplemented["postgres"]; s.DSN == "" && !missing {
			t.missing("dsn", "; the driver postgres needs it")
		}
	case t.has("dsn"):
		d.atKey(t.child("dsn"), "dsn is for other drivers; the sqlite store lies in the data directory, which --data chooses")
	}
	t.refuseUnknown()
	return s
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
