// Package toolpin owns the file that pins the tools of an MCP server: the definitions that
// an operator has reviewed and approved, each with a digest. It must not know sessions,
// agents or how a tool is called.
//
// The digest covers name, description, argument schema and annotations. Two definitions
// are equal if these have the same canonical JSON (RFC 8785).
package toolpin
