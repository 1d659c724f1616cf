// Package grpcconn owns calls of gRPC over the HTTP client of a partner. It must not know what
// is called.
package grpcconn
