// Package durabletest owns what a power cut would leave of files: it watches the syncs of
// the code that wrote them. Only tests import it. It must not know what the files hold.
package durabletest

import "testing"

// Disk is what a disk has for sure: the files whose content was synced, and the names that
// a synced directory had then.
type Disk struct {
	sizes map[uint64]int64 // by inode
	names map[place]uint64 // inodes
	// early are the inodes whose names lasted before their content.
	early map[uint64]bool
	order []string // of the names
}

// place is a name in a directory, which is named by its inode: it may be renamed.
type place struct {
	dir  uint64
	name string
}

// Want wants files and directories to last, with all that is below them and their own
// names.
func (d *Disk) Want(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := d.want(t, path); err != nil {
			t.Error(err)
		}
	}
}

// WantLast wants a name to be the last of those given that lasts.
func (d *Disk) WantLast(t *testing.T, last string, before ...string) {
	t.Helper()
	at := map[string]int{}
	for i, name := range d.order {
		at[name] = i + 1
	}
	for _, name := range before {
		if at[name] == 0 || at[name] > at[last] {
			t.Errorf("after a power cut there may be %s without %s: names last in the order %q", last, name, d.order)
		}
	}
}
