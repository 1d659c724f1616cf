// Package pages owns the tests of a whole host in which the examples and the pages do
// what they print. It must not know how the host is built: it uses files, requests and
// data directories.
package pages
