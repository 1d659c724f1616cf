// Package toolpin owns the file that pins the tools of an MCP server: what an
// operator has looked at and approved, with a digest of each. It must not know
// sessions, agents or how a tool is called.
//
// What counts of a definition is its name, its description, the schema of its
// arguments and its annotations. Two definitions are the same when these have the
// same canonical JSON (RFC 8785).
package toolpin
