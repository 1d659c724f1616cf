// Package capability owns the ops a turn may call: it looks an op up in the
// ABI's table, checks that it is built and granted, decodes its request, and
// acts. It runs a turn by handing its input and its ops to a module. It must
// not know how a module is run, nor how effects are committed.
package capability
