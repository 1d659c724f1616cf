// Package gateway owns what all gateways share: the port through which a foreign protocol
// reaches the runtime, and what a gateway must offer to the host. It must not know any
// protocol, nor the store, the router or rest.
//
// A gateway translates between a foreign protocol and the runtime and stores nothing
// itself. A realm (a company, a network, one client of an agent's token) is a swarm that
// does not run here: its messages come in through [Runtime].Ask, messages for it leave
// through the router, which calls the gateway's [Carrier].
package gateway
