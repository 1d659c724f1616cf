// Package filelock owns the locks by which processes take turns at a file. The system
// releases them when their process dies, however it dies. It must not know what the files
// are for.
package filelock

import "errors"

// ErrLocked: another process has the lock.
var ErrLocked = errors.New("another process has locked it")
