package listener

// reservedFiles is the number of descriptors for other things than connections of
// callers: the store, modules, and requests of agents and auth backends.
const reservedFiles = 512

// ConnectionsFor returns how many connections fit so many descriptors, at most the
// given number; 0 means no limit.
func ConnectionsFor(files uint64, most int) int {
	if files > 1<<20 {
		return most
	}
	limit := max(64, int(files)-reservedFiles)
	if most > 0 && most < limit {
		return most
	}
	return limit
}
