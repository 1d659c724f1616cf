package host

import (
	"math"
	"runtime"
	"runtime/debug"
)

// slack is what a heap may grow by before it is collected, however small it is.
const slack = 64 << 20

// Slack keeps a small heap from being collected all the time; back undoes it. It
// changes the whole process: a program calls it once, before [New].
//
// A host under load has some 15 MiB that live and makes 100 KiB of garbage for
// each message, so it would be collected twenty times a second, and spend a tenth
// of its time on that. A block that nobody touches counts as living and takes no
// memory; it makes the next collection wait for as many bytes more. On a large
// heap it changes nothing, as a higher GOGC would. An operator who limits the
// memory has said what is wanted, and gets no slack.
func Slack() (back func()) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return func() {}
	}
	block := make([]byte, slack)
	return func() { runtime.KeepAlive(block) }
}
