package keyring

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// medium keeps the text of a keyring. One goroutine at a time uses it, and what it has written
// when it returns is durable.
type medium interface {
	// load returns what there is, [io/fs.ErrNotExist] for nothing.
	load() (content, error)
	// unchanged is false where the text is not as it was left.
	unchanged() bool
	append(line []byte) error
	replace(text []byte) error
}

// Table keeps the text of a keyring in a database. One goroutine at a time uses it.
type Table interface {
	// Name names the table in errors.
	Name() string
	// Load returns the text, [io/fs.ErrNotExist] where there is none.
	Load() ([]byte, error)
	// Append adds a line. It is durable when Append returns; after an error it may be there.
	// Behind lines that were not loaded it adds none, and returns [ErrStale].
	Append(line []byte) error
	// Replace removes the text and writes another, both or nothing. A text that was not loaded
	// is [ErrStale] as well.
	Replace(text []byte) error
}

// OpenTable reads the keyring in a table. A database has other readers than its host, so the
// keys in it must be wrapped.
func OpenTable(t Table, opts Options) (*Ring, error) {
	if opts.KEK == nil {
		return nil, fmt.Errorf("keyring %s: %w", t.Name(), ErrPlain)
	}
	return open(t.Name(), tableMedium{t}, opts)
}

// ErrPlain: the keys of a database must be wrapped.
var ErrPlain = errors.New("its keys must be wrapped, because the server and its backups have them: set [store] keyring in swarm.toml")

// ReadTable is [Read] of a table.
func ReadTable(t Table) ([]byte, error) {
	raw, err := t.Load()
	if err == nil {
		_, err = parseWhole(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("keyring %s: %w", t.Name(), err)
	}
	return raw, nil
}

// Lines splits a text into what a table has in its rows.
func Lines(text []byte) [][]byte { return slices.Collect(bytes.Lines(text)) }

type tableMedium struct{ t Table }

func (m tableMedium) load() (content, error) {
	raw, err := m.t.Load()
	if err != nil {
		return content{}, err
	}
	return parseWhole(raw)
}

// parseWhole refuses a text whose end is no line: nothing cuts a row short.
func parseWhole(raw []byte) (content, error) {
	c, err := parse(raw)
	if err == nil && c.whole < int64(len(raw)) {
		err = fmt.Errorf("%w: line at byte %d does not match its checksum", errDamaged, c.whole)
	}
	return c, err
}

// ErrStale: another host has added keys since the table was loaded.
var ErrStale = errors.New("another host has added keys")

func (m tableMedium) unchanged() bool { return true }

func (m tableMedium) append(line []byte) error { return m.t.Append(line) }

func (m tableMedium) replace(text []byte) error { return m.t.Replace(text) }
