// Package subprocess owns agents that run as processes of their own: how their
// program is held and checked, how it is confined and started, and how turns and
// ops cross to it and back. It must not know what an op does, what is granted, nor
// who commits.
//
// A program is read once into a sealed memory file, whose digest is what is
// compared and what runs. A [Program] gives every tenant a process of its own, so
// that tenants never share memory. Between host and process stands a guard, the
// same executable as the host's under the command __exec: it ends with the host,
// and kills the process with everything that it has started.
package subprocess
