package listener

import "math"

// MaxOpenFiles: only memory bounds the handles of a process.
func MaxOpenFiles() uint64 { return math.MaxUint64 }
