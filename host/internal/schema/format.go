package schema

import (
	"sync"

	"github.com/xeipuuv/gojsonschema"

	"skep/spec/mail"
)

// format is a checker of strings; what is not a string is for the type keyword.
type format struct {
	valid  func(string) bool
	reason string
}

// IsFormat is the library's interface.
func (f format) IsFormat(v any) bool {
	s, ok := v.(string)
	return !ok || f.valid(s)
}

// formats are all that a schema may use. The rules are package mail's, so that
// one text is the same to every part of the host.
var formats = map[string]format{
	"uuid":      {mail.ValidUUID, "must be a UUID"},
	"date-time": {validTime, "must be an RFC 3339 date-time"},
	"printable": {mail.Printable, "must consist of printable characters"},
}

func validTime(s string) bool {
	_, err := mail.ParseTime(s)
	return err == nil
}

// formatPrefix makes a format's name private. The library keeps its checkers in
// one table for the whole process: under their public names ours would change the
// verdicts of every other schema in it, and its own are unfit for us (its uuid
// refuses upper case, its date-time takes a bare date).
const formatPrefix = "skep-"

var registerFormats = sync.OnceFunc(func() {
	for name, f := range formats {
		gojsonschema.FormatCheckers.Add(formatPrefix+name, f)
	}
})

// private returns a copy of a schema in which formats have their private names.
func private(doc map[string]any) map[string]any {
	return rename(doc).(map[string]any)
}

func rename(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if name, ok := e.(string); ok && k == "format" {
				e = formatPrefix + name
			}
			out[k] = rename(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = rename(e)
		}
		return out
	}
	return v
}
