// Package capability owns the ops a turn may call: it finds an op in its table,
// checks that it is built and granted, decodes its request, and acts. What needs
// no waiting is done on the turn's goroutine, in the order of the calls; effects
// fly beside it, a few at once, and are gone when the turn is (flight.go). It runs
// a turn by handing its input and its ops to a module. It must not know how a
// module is run, nor how effects are committed.
package capability
