// Package state owns the port of the small durable records that gateways keep: ways back
// of conversations, registrations, subscriptions, push addresses; and how such records are
// changed, listed and locked. It must not know who implements it, nor what the records mean.
// Records are sealed with their tenant's key, count in its storage, and are exported, erased
// and rotated with it.
package state

import (
	"context"
	"errors"
	"time"
)

// Limits of records.
const (
	MaxValue   = 256 << 10 // bytes of a value
	MaxName    = 1 << 10   // bytes of a name
	MaxOfRealm = 10_000    // records of one realm at a gateway
)

var (
	// ErrNotFound is returned for a record that does not exist or has expired.
	ErrNotFound = errors.New("no such record")
	// ErrVersion is returned when the record has another version than expected.
	ErrVersion = errors.New("the record has changed")
	// ErrFull is returned when a record would exceed a limit or the tenant's storage.
	ErrFull = errors.New("no place for the record")
)

// Key identifies a record.
type Key struct {
	Tenant, Gateway, Realm string
	// Kind is conversation, agent, context, subscription, subscriber, stream, mailbox, push, alias,
	// delegation or notice.
	Kind string
	Name string // not empty
}

// Record is a stored value.
type Record struct {
	Key Key
	// Version is another one after each write, greater than the one before and never 0. A
	// record that was removed and made again does not return to an earlier version.
	Version int64
	Value   []byte
	Expires time.Time // zero for never
}

// Store keeps records. All methods are safe for concurrent use; a write that has
// returned nil is durable. A tenant that is being erased has no records, and a write for
// it fails.
type Store interface {
	// Get returns ErrNotFound for a record that has expired.
	Get(ctx context.Context, k Key) (Record, error)
	// Put writes r if the stored version is r.Version (0: there must be none), and
	// returns the new version.
	Put(ctx context.Context, r Record) (version int64, err error)
	// Delete removes a record of that version (0: of any); one that is not there is no
	// error.
	Delete(ctx context.Context, k Key, version int64) error
	// List returns records of the tenant, gateway, realm and kind of a key, in the order of
	// their realms and names: at most limit. A realm of "" is every realm. after is the key
	// of the last record of the page before, the zero one for the start.
	List(ctx context.Context, of, after Key, limit int) ([]Record, error)
}
