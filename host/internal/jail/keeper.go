package jail

import (
	"context"
	"fmt"
	"os"
	"sync"

	"skep/abi"
)

// Keeper lets one change at a time into what a tenant has in a directory, so that
// what it may have there is counted right. It may be used by many goroutines at
// once.
type Keeper struct {
	mu   sync.Mutex
	busy map[string]chan struct{} // by directory and tenant; full while one changes it
}

// NewKeeper makes a keeper. One has to keep all jails of a process.
func NewKeeper() *Keeper { return &Keeper{busy: map[string]chan struct{}{}} }

// Options of a jail.
type Options struct {
	// Table names where in the operator's file it stands, as in "[actions.read_file]".
	Table string
	// Shared gives all tenants the directory itself.
	Shared bool
	// Write allows changes.
	Write bool
	// MaxFile bounds the bytes of a file, MaxTotal those of all that a tenant has.
	MaxFile, MaxTotal int64
}

// Jail is one directory. It does not change and may be used by many goroutines at
// once; it holds nothing open.
type Jail struct {
	keeper *Keeper
	dir    string
	is     os.FileInfo
	opt    Options
	names  int // that a tenant may have
}

// Open makes a jail of a directory that is there. Another one that is put in its
// place later is refused.
func (k *Keeper) Open(dir string, opt Options) (*Jail, error) {
	is, err := os.Stat(dir)
	if err != nil {
		return nil, plainly(err)
	}
	if !is.IsDir() {
		return nil, fmt.Errorf("it is not a directory")
	}
	return &Jail{keeper: k, dir: dir, is: is, opt: opt, names: maxEntries}, nil
}

// alone waits until nobody changes what a tenant has, and returns what ends that.
func (j *Jail) alone(ctx context.Context, tenant string) (leave func(), fault *abi.Error) {
	if j.opt.Shared {
		tenant = ""
	}
	key := j.dir + "\x00" + tenant
	j.keeper.mu.Lock()
	turn := j.keeper.busy[key]
	if turn == nil {
		turn = make(chan struct{}, 1)
		j.keeper.busy[key] = turn
	}
	j.keeper.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, late(ctx)
	}
}
