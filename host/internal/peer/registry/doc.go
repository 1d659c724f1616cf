// Package registry owns the list of other swarms that this host knows: swarms of
// the operator's file, registered by administrators, and discovered. It must not
// know HTTP routes, how mail travels between swarms, or where a token's variable
// is read. [Registry.Run] checks the health of swarms; the registry is safe for
// concurrent use.
//
// A volatile entry lives as long as the process. The others are stored in a file
// beside the store, which never holds a token but a reference to one,
// ${SWARM_AUTH_TOKEN_<NAME>}.
package registry
