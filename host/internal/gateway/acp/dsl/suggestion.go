package dsl

import (
	"strings"

	"skep/host/internal/spelling"
)

// otherWords are what items begin with in other languages.
var otherWords = map[string]string{
	"class": "type", "interface": "type", "message": "type", "object": "type", "record": "type", "schema": "type", "struct": "type", "typedef": "type",
	"from": "import", "include": "import", "require": "import", "use": "import", "using": "import",
	"answer": "semantics", "rule": "semantics",
}

// otherVerbs are what stands elsewhere between a question and its answer.
var otherVerbs = map[string]string{"answers": "expects", "gives": "expects", "returns": "expects", "yields": "expects"}

// otherTypes are what types are called in other languages, in small letters, where spelling
// does not lead from there to ours.
var otherTypes = map[string]string{
	"bool": "Boolean", "bytestring": "Bytes", "binary": "Bytes", "blob": "Bytes",
	"decimal": "Float", "double": "Float", "float32": "Float", "float64": "Float", "number": "Float", "real": "Float",
	"bigint": "Long", "int64": "Long", "uint32": "Long", "uint64": "Long", "i64": "Long",
	"byte": "Int", "int8": "Int", "int16": "Int", "int32": "Int", "integer": "Int", "short": "Int", "i32": "Int",
	"char": "String", "date": "String", "datetime": "String", "str": "String", "text": "String", "time": "String", "timestamp": "String", "uri": "String", "url": "String", "uuid": "String",
	"array": "List", "seq": "List", "sequence": "List", "slice": "List", "vec": "List", "vector": "List",
	"dict": "Map", "dictionary": "Map", "hash": "Map", "hashmap": "Map", "object": "Map", "struct": "Map",
}

// suggestion is the option that a word probably stands for: one that is spelt like it, or what it
// means in other languages. It is empty for none.
func suggestion(word string, options []string, others map[string]string) string {
	if near := spelling.Nearest(word, options); near != "" {
		return near
	}
	return others[strings.ToLower(word)]
}
