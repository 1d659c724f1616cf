// Package check owns whether a text is a message of given declarations, and the part of
// generated Go that reads and writes JSON: parse.go, read.go and write.go are copied into
// it, so that programs and the host refuse the same texts for the same reasons. It must
// not know how declarations are written, nor other languages.
package check

import _ "embed"

//go:embed parse.go
var parseSource string

//go:embed read.go
var readSource string

//go:embed write.go
var writeSource string

// Sources are the files of Go that generated code consists of beside its types, by
// name, in this package's name.
func Sources() map[string]string {
	return map[string]string{"parse.go": parseSource, "read.go": readSource, "write.go": writeSource}
}
