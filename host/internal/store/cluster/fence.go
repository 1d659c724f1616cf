//go:build !nofence

package cluster

// isFenced reports whether this host is missing among the hosts that are alive.
func (m *Member) isFenced(seen map[int64]*other) bool { return seen[m.opts.HID] == nil }
