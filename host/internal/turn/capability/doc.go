// Package capability owns the ops a turn may call: it finds an op in its table, checks its
// grant, decodes its request and runs it, and it owns the journal and its replay. An op
// that waits for nothing runs on the turn's goroutine, in call order; effects run beside
// it, a few at once, and end with the turn (asyncop.go). It must not know how a module is
// run, nor how effects are committed.
package capability
