//go:build !nofence

package cluster

// isFenced reports whether this host is not among those that are not dead.
func (m *Member) isFenced(seen map[int64]*other) bool { return seen[m.opts.HID] == nil }
