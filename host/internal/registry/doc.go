// Package registry owns which other swarms this host knows: those of the
// operator's file, and those an administrator has registered. It must not know
// HTTP routes, how mail travels between swarms, or where a token's variable is
// read. Its one loop asks swarms whether they are well while Run does; all of it may
// be used by many at once.
//
// A volatile entry lives as long as the process. The others stand in a file
// beside the store, which never holds a token: in its place stands a reference,
// ${SWARM_AUTH_TOKEN_<NAME>}.
package registry
