package fileaction

import (
	"context"
	"fmt"
	"os"
	"sync"

	"skep/abi"
)

// Locks serializes the changes of a tenant in a directory, so that quota checks are exact.
// It is safe for concurrent use.
type Locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // by directory and tenant; full while a change runs
}

// NewLocks returns the locks for all directories of a host.
func NewLocks() *Locks { return &Locks{held: map[string]chan struct{}{}} }

// Options are the settings of a [Directory].
type Options struct {
	// Table is the table of the operator's file, as in "[actions.read_file]".
	Table string
	// Shared gives all tenants the directory itself.
	Shared bool
	// Write allows changes.
	Write bool
	// MaxFile bounds one file, MaxTotal all files of a tenant, both in bytes.
	MaxFile, MaxTotal int64
}

// Directory is a directory whose files agents may use. It is immutable, safe for
// concurrent use, and holds no open file.
type Directory struct {
	locks      *Locks
	dir        string
	info       os.FileInfo
	opt        Options
	maxEntries int // per tenant
}

// OpenDirectory returns an existing directory. If another directory takes its place later,
// calls are refused.
func (l *Locks) OpenDirectory(dir string, opt Options) (*Directory, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, stripPaths(err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("it is not a directory")
	}
	return &Directory{locks: l, dir: dir, info: info, opt: opt, maxEntries: maxEntries}, nil
}

// lockTenant waits until no other change of the tenant runs, and returns the unlock
// function.
func (d *Directory) lockTenant(ctx context.Context, tenant string) (unlock func(), fault *abi.Error) {
	if d.opt.Shared {
		tenant = ""
	}
	key := d.dir + "\x00" + tenant
	d.locks.mu.Lock()
	lock := d.locks.held[key]
	if lock == nil {
		lock = make(chan struct{}, 1)
		d.locks.held[key] = lock
	}
	d.locks.mu.Unlock()
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, contextError(ctx)
	}
}
