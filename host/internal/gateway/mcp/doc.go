// Package mcp owns the gateway for clients of the Model Context Protocol: exposed agents
// are tools, their questions elicitations. It must not know rest, the router, the store
// nor the configuration.
//
// Transport is streamable HTTP
// (https://modelcontextprotocol.io/specification/2025-11-25/basic/transports): without
// sessions for clients of protocol 2026-07-28 and later, with sessions for older ones.
package mcp
