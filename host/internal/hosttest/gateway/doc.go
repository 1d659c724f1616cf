// Package gateway owns the tests of a whole host that is reached over other protocols,
// and whose agents reach others over them. It must not know how the host is built: it uses
// files and requests.
package gateway
