// Package amp owns the gateway to AMP 1.0, the Agent Mesh Protocol: how exposed agents
// answer its capability requests over HTTP, WebSocket, gRPC and a broker, how agents of skep write to
// agents that speak it, the registry of a partner's agents, and the contexts that agents share. It must not
// know the store, the router or rest.
//
// AIP/1.0 is the same protocol under the name that its document has in all examples.
package amp
