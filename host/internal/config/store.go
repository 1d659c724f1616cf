package config

import (
	"time"

	"skep/host/internal/keyring"
)

// Store is the [store] table.
type Store struct {
	Driver string // DriverSQLite or DriverPostgres
	DSN    Secret // of DriverPostgres
	// Keyring is the key that wraps the keys of tenants, as
	// [keyring.ParseKEK] reads it; empty leaves them plain in their file.
	Keyring Secret
	// JournalRetention is how long the records of turns are kept after they and
	// their task have ended, HistoryRetention how long whole tasks are; 0 keeps.
	JournalRetention, HistoryRetention time.Duration
}

// Values of [Store.Driver].
const (
	DriverSQLite   = "sqlite"
	DriverPostgres = "postgres"
)

func (d *decoder) store(t *table) Store {
	s := Store{
		Driver:           t.oneOf("driver", DriverSQLite, DriverSQLite, DriverPostgres),
		DSN:              Secret(t.text("dsn", "")),
		Keyring:          d.keyring(t),
		JournalRetention: t.duration("journal_retention", 7*day, retention),
		HistoryRetention: t.duration("history_retention", 0, retention),
	}
	switch {
	case s.Driver == DriverPostgres:
		d.needs("postgres", t.child("driver"))
		if _, missing := d.unbuilt["postgres"]; s.DSN == "" && !missing {
			t.missing("dsn", "; the driver postgres needs it")
		}
	case t.has("dsn"):
		d.atKey(t.child("dsn"), "dsn is for other drivers; the sqlite store lies in the data directory, which --data chooses")
	}
	t.done()
	return s
}

// retention bounds how long things are kept.
var retention = bounds{int64(time.Minute), int64(100 * 365 * day), true}

// keyring reads the wrapping key. One that stands in the file itself would lie
// in every copy of it.
func (d *decoder) keyring(t *table) Secret {
	v, ok := t.value("keyring")
	if !ok {
		return ""
	}
	if !v.ref {
		d.atValue(v.spot, v.path+` must be "env::NAME" or "file::PATH"; a key does not belong into this file`)
		return ""
	}
	if _, err := keyring.ParseKEK(v.text); err != nil {
		d.atValue(v.spot, v.shown+" is no key: "+err.Error())
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
