// Package grpcserve owns calls of gRPC that come on the public listener: how far their messages
// are read ahead, that methods have the request of their call, and statuses that no method has
// given. It must not know what is called.
package grpcserve
