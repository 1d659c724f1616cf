// Package mcpclient owns sessions with MCP servers: programs that are started for
// them, or hosts that are reached over HTTP. It must not know swarms, nor who may
// call what.
//
// Everything that comes from a server is a stranger's. Answers have bounds in size
// and time, a definition counts only as it was pinned, and what a server asks of
// its client is refused. A tenant has a session of its own with each server, and a
// program of its own behind it.
//
// A [Server] starts nothing by itself: a session is opened by the first call, and
// closed when nobody has used it for a while.
package mcpclient
