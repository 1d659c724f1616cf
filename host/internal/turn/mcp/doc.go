// Package mcp owns sessions with MCP servers
// (https://modelcontextprotocol.io/specification): programs that it starts, or hosts that
// it reaches over HTTP. It must not know swarms, nor who may call what.
//
// No data of a server is trusted. Answers are bounded in size and time, a tool is used
// only while its definition matches its pin, and requests of the server to its client are
// refused. Each tenant has a session of its own with each server, and a program of its own
// behind it.
//
// A [Server] starts nothing by itself: the first call opens a session, and an idle session
// is closed.
package mcp
