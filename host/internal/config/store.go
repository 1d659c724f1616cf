package config

// Store is the [store] table.
type Store struct {
	Driver  string // DriverSQLite or DriverPostgres
	DSN     Secret // of DriverPostgres
	Keyring string // path of the keys that seal payloads
}

// Values of [Store.Driver].
const (
	DriverSQLite   = "sqlite"
	DriverPostgres = "postgres"
)

func (d *decoder) store(t *table) Store {
	s := Store{
		Driver: t.oneOf("driver", DriverSQLite, DriverSQLite, DriverPostgres),
		DSN:    Secret(t.text("dsn", "")),
	}
	if v, ok := t.value("keyring"); ok {
		s.Keyring = d.path(v.text)
		d.needs("keyring", v.spot)
	}
	switch {
	case s.Driver == DriverPostgres:
		d.needs("postgres", t.child("driver"))
		if s.DSN == "" {
			t.missing("dsn", "; the driver postgres needs it")
		}
	case t.has("dsn"):
		d.atKey(t.child("dsn"), "dsn is for other drivers; the sqlite store lies in the data directory, which --data chooses")
	}
	t.done()
	return s
}
