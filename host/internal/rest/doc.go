// Package rest owns the host's HTTP face: MAIL's routes, skep's own under
// /skep/v1, event streams, the operators' listener, and the one table that turns
// refusals into statuses. It must not know how a task runs, where it is kept or
// how an agent's code is executed; all it asks of the rest of the host is
// [Runtime]. It starts no goroutine: everything happens in those of net/http.
//
// A request goes through the same gates in the same order: host name, origin,
// route, who the caller is, how often it may call, the size of the body. Then
// its route's handler answers, or returns the error that answers it. What a
// handler may rely on is in call; a route is one line of the table in route.go
// and one path of spec/openapi.yaml, which a test compares.
package rest
