// Package a2a owns the gateway to the Agent2Agent protocol
// (https://a2a-protocol.org/latest/specification/): how exposed agents are served to its
// clients, and how agents of skep call agents that speak it. It must not know the store,
// the router or rest.
//
// An A2A task is an exchange of [gateway.Runtime], and its context the conversation of
// the exchange. The gateway implements the request handler of the protocol's Go library
// itself, so the runtime holds all tasks; the library has the bindings (JSON-RPC, REST,
// gRPC) and version 0.3.
package a2a
