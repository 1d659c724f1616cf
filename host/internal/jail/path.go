package jail

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"skep/abi"
)

// Bounds of a path.
const (
	maxPath  = 1024 // bytes
	maxName  = 255  // bytes between two slashes
	maxDepth = 32   // names
)

// partPrefix begins the names of files that are not whole yet. Nobody sees them.
const partPrefix = ".skep-part-"

// clean checks the path of a call and brings it to one spelling: "." for the
// directory itself, else names with a slash between them.
func clean(p string) (string, *abi.Error) {
	switch {
	case p == "":
		return "", fail(abi.CodeInvalid, "path", `path is missing; it is relative, as in "a/b.txt", and "." is the directory itself`)
	case len(p) > maxPath:
		return "", fail(abi.CodeInvalid, "path", "path has %d bytes, at most %d", len(p), maxPath)
	case !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl):
		return "", fail(abi.CodeInvalid, "path", "path has control characters, or is not UTF-8")
	case strings.Contains(p, `\`):
		return "", fail(abi.CodeInvalid, "path", `path must have "/" between names, and no "\"`)
	case strings.HasPrefix(p, "/"):
		return "", fail(abi.CodeDenied, "path", "path must be relative, not %.100q", p)
	}
	names := strings.Split(p, "/")
	for _, name := range names {
		switch {
		case name == "..":
			return "", fail(abi.CodeDenied, "path", `path must not have "..": %.100q`, p)
		case len(name) > maxName:
			return "", fail(abi.CodeInvalid, "path", "a name in path has %d bytes, at most %d", len(name), maxName)
		case strings.HasPrefix(strings.ToLower(name), partPrefix):
			return "", fail(abi.CodeDenied, "path", "names that begin with %q are the host's", partPrefix)
		}
	}
	p = path.Clean(p)
	if depth(p) > maxDepth {
		return "", fail(abi.CodeInvalid, "path", "path has %d names, at most %d", depth(p), maxDepth)
	}
	return p, nil
}

// depth is how many names a clean path has.
func depth(p string) int { return strings.Count(p, "/") + 1 }
