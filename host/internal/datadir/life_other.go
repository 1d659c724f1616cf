//go:build !linux

package datadir

// place is empty: the system does not name its start, so the host before is not known to be dead.
func place(string) string { return "" }
