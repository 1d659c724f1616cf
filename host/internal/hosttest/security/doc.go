// Package security owns the tests of a whole host in which secrets, credentials,
// tenants and private addresses are kept from agents and callers. It must not know how
// the host is built: it uses files, requests and data directories.
package security
