// Package process owns agents that run as processes: how a program is loaded and checked,
// how it is confined and started, and how turns and ops cross to it and back. It must not
// know what an op does, what is granted, nor who commits.
//
// A program is read once into a sealed memory file; its digest is checked and it is the
// file that runs. A [Program] starts a process for each tenant, so that tenants never
// share memory. Between host and process runs a guard, the host's executable with the
// command __exec. The guard ends with the host, and kills the process with all its
// descendants.
package process
