// Package rest owns the host's HTTP API: MAIL's routes, skep's own under
// /skep/v1, event streams, the operators' listener, and the one table from
// refusals to statuses. It must not know how a task runs, where it is stored or
// how an agent's code is executed; it reaches the rest of the host through
// [Runtime]. It starts no goroutine: handlers run on goroutines of net/http.
//
// Every request passes the same checks in the same order: host name, origin,
// route, authentication, rate limit, size of the body. Then the route's handler
// answers, or returns the error that answers it. A handler gets a call. A route
// is one line of a table in routes.go and one path of spec/openapi.yaml; a test
// compares the two.
package rest
