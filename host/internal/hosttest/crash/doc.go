// Package crash owns the tests of a whole host in which hosts are killed and wires are
// cut: no accepted task is lost, repeated or changed. It must not know how the host is
// built: it uses files, requests and data directories.
package crash
