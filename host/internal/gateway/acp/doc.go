// Package acp owns the gateway to ACP 1.0, the agent communication protocol of six message
// types: how exposed agents answer its messages over HTTP, WebSockets and a broker, and
// how agents of skep write to agents that speak it. It must not know the store, the router or rest.
//
// The types and the codec of package message are generated from the declarations in
// spec/gateways/acp and are strict. What the profile `default` accepts besides is
// rewritten to their form first, see reader.
//
// Two other protocols have the same initials: Zed's Agent Client Protocol, and BeeAI's
// Agent Communication Protocol, whose paths begin with /runs and /agents.
package acp
