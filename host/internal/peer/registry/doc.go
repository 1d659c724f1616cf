// Package registry owns the list of other swarms that this host knows: swarms of
// the operator's file, registered by administrators, and discovered. It must not
// know HTTP routes, how mail travels between swarms, or where a token's variable
// is read. [Registry.Run] checks the health of swarms; the registry is safe for
// concurrent use.
//
// A volatile entry lives as long as the process. The others are stored in a file
// beside the store, which never holds a token but a reference to one,
// ${SWARM_AUTH_TOKEN_<NAME>}. Hosts that share a [Store] have them there instead, with
// the token that came with the registration, and each checks the health itself: what
// one host reaches another may not, and the tasks of a host are told what it has found.
package registry
