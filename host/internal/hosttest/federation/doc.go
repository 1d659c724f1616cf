// Package federation owns the tests of a whole host in which several hosts work on one
// task: hosts of this program, the reference server, and peers that forge messages. It
// must not know how the host is built: it uses files, requests and data directories.
package federation
