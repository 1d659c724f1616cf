// Package sdk owns the sources of the guest SDKs that a new project gets as a
// copy. It must not know what else a project is made of. The Go SDK is a module
// of its own, which another module cannot embed: package scaffold keeps an archive
// of it.
package sdk

import (
	"embed"
	"io/fs"
)

//go:embed rust/src/*.rs c/*.h assemblyscript/assembly/*.ts assemblyscript/testing/host.mjs assemblyscript/testing/world.mjs
var sources embed.FS

// Sources holds the sources by their paths in this directory.
func Sources() fs.FS { return sources }
