// Package definition owns the tests of a whole host in which definitions come from the
// file, a reload and the network, with their files, actions and MCP servers. It must
// not know how the host is built: it uses files, requests and data directories.
package definition
