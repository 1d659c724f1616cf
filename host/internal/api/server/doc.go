// Package server owns the host's HTTP servers: it opens the public and the admin
// listener, wires authentication and the REST interface, and serves until its
// context ends. It must not know the runtime but by the ports of package rest.
package server
